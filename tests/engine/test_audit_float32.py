"""An audit in float64 of a function that computes in float32: digits are lost, and nothing else is wrong."""

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.findings import findings
from gradspec.law import Rank, Status
from gradspec.laws import LAWS

NAMES = ("surrogate", "adjoint", "cotangent_linearity", "cotangent_layout", "second_order", "retained_graph")
CHOSEN = [law for law in LAWS if law.name in NAMES]
CALL = "(randn(2, 3, 4), randn(4))"


def plain(x, w):
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6) * w.float()).to(x.dtype)


class Normed(Function):
    """RMSNorm, computed in float32 for any dtype."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return plain(x, w)

    @classmethod
    def backward(cls, ctx, y_bar):
        x, w = ctx.saved_tensors
        wide, g = x.float(), cls.seen(y_bar.float())
        r = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        n, of_n = wide * r, g * w.float()
        x_bar = r * (of_n - n * (of_n * n).mean(-1, keepdim=True))
        factor = cls.factor(x.dtype)
        return (factor * x_bar).to(x.dtype), (g * n).flatten(0, -2).sum(0).to(w.dtype)

    @staticmethod
    def factor(dtype):
        return 1

    @staticmethod
    def seen(g):
        return g


class Doubled(Normed):
    @staticmethod
    def factor(dtype):
        return 2


class DoubledInFloat64(Normed):
    @staticmethod
    def factor(dtype):
        return 2 if dtype == torch.float64 else 1


class Clipped(Normed):
    @staticmethod
    def seen(g):
        return g.clamp(-1, 1)


class Misread(Normed):
    """Reads its cotangent in the order of memory."""

    @staticmethod
    def seen(g):
        return torch.as_strided(g, g.shape, torch.empty(g.shape).stride())


class Single(Normed):
    """Takes float32 alone, as a kernel does."""

    @staticmethod
    def forward(ctx, x, w):
        if x.dtype != torch.float32:
            raise TypeError("no kernel")
        return Normed.forward(ctx, x, w)


class OnePercentOff(Normed):
    @staticmethod
    def factor(dtype):
        return 1.01


class SingleOnePercentOff(Single, OnePercentOff):
    pass


class SingleOfWeight(Single):
    """Off by one percent in the smaller of two gradients."""

    @classmethod
    def backward(cls, ctx, y_bar):
        x_bar, w_bar = super().backward(ctx, y_bar)
        return x_bar, 1.01 * w_bar


def found(function):
    return findings(audit(function, [CALL], laws=CHOSEN, name="it", jobs=1).report)


@pytest.mark.parametrize("function", [plain, Normed])
def test_lost_digits_are_one_finding_and_the_rest_follows(function):
    (only,) = found(function)

    assert only.rank == Rank.WASTE
    assert "computes in float32" in only.verdict.finding.message
    assert only.verdict.law == "surrogate"
    assert "cotangent_linearity" in only.follows


@pytest.mark.parametrize(
    ("function", "law"),
    [
        (Doubled, "surrogate"),
        pytest.param(DoubledInFloat64, "surrogate", marks=pytest.mark.slow),
        (Clipped, "cotangent_linearity"),
        (Misread, "cotangent_layout"),
    ],
)
def test_a_gradient_that_is_wrong_is_not_taken_for_lost_digits(function, law):
    said = {one.verdict.law: one for one in found(function)}

    assert law in said
    assert said[law].rank != Rank.WASTE


def test_what_rounds_on_purpose_computes_in_its_own_dtype():
    class Rounded(Function):
        @staticmethod
        def forward(ctx, x, w):
            return (8 * x).round()

        @staticmethod
        def backward(ctx, y_bar):
            return y_bar, None

    assert not [one for one in found(Rounded) if "float32" in one.verdict.finding.message]


@pytest.mark.parametrize(
    ("function", "name"), [(OnePercentOff, "x"), (SingleOnePercentOff, "x"), (SingleOfWeight, "w")]
)
def test_one_percent_of_one_gradient_is_seen_in_float32(function, name):
    (wrong,) = audit(function, [CALL], laws=["surrogate"], name="it", jobs=1).report.of(law="surrogate")

    assert wrong.status is Status.BROKEN
    assert f"the gradient of `{name}` is off by the factor 1.01" in wrong.finding.likely


@pytest.mark.parametrize(
    "call", [CALL, "(1000 * randn(8, 64), randn(64) / 1000)", "(randn(2, 3, 4) / 100, 50 * randn(4))"]
)
def test_a_kernel_for_float32_holds(call):
    report = audit(Single, [call], laws=["surrogate"], name="it", jobs=1).report

    assert [v.status for v in report.verdicts] == [Status.HOLDS]


class HandsOnSingle(Function):
    """The gradient is right, and has the digits of a float32."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar.float() * x.float().cos() * 1.1 / 1.1


class ClipsInSingle(HandsOnSingle):
    @staticmethod
    def backward(ctx, y_bar):
        return HandsOnSingle.backward(ctx, y_bar.clamp(-100, 100))


@pytest.mark.parametrize(("function", "rank"), [(HandsOnSingle, Rank.WASTE), (ClipsInSingle, Rank.WRONG)])
def test_what_a_gradient_in_float32_rounds_is_no_clipped_cotangent(function, rank):
    (verdict,) = audit(function, ["(randn(4, 3),)"], laws=["cotangent_linearity"]).report.of(law="cotangent_linearity")
    assert verdict.finding.rank == rank, verdict.finding


class TurnsInSingle(Function):
    """The parts of its gradient have the digits of a float32, and the imaginary one is clipped."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, y_bar):
        return torch.complex(2.2 * y_bar.real.float() / 1.1, 2 * y_bar.imag.float().clamp(-100, 100)).to(y_bar.dtype)


def test_an_imaginary_part_that_is_clipped_in_float32_is_no_rounding():
    (verdict,) = audit(TurnsInSingle, ["(randn(4, dtype=complex128),)"], laws=["cotangent_linearity"]).report.verdicts
    assert verdict.finding.rank == Rank.WRONG, verdict.finding
