"""What one line computes in a half type and has to be in float32 is found, beside a reference and without one."""

from pathlib import Path

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.findings import rank_of
from gradspec.law import Rank, Status
from gradspec.spec import Accuracy

POSITIONS, SMALL = "(randn(2, 200, 16, dtype=bfloat16),)", "(0.0005 * randn(8, 64, dtype=float16),)"


def rotated(x, cos, sin):
    a, b = x.float().chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


class Rotary(Function):
    """Numbers turned by an angle that grows with their place."""

    @staticmethod
    def angles(x):
        place = torch.arange(x.shape[1], dtype=torch.float32)
        return place[:, None] * 10.0 ** -torch.linspace(0, 1, x.shape[-1] // 2)

    @classmethod
    def forward(cls, ctx, x):
        angle = cls.angles(x).to(torch.float64 if x.dtype == torch.float64 else torch.float32)
        ctx.save_for_backward(angle.cos(), angle.sin())
        return rotated(x, angle.cos(), angle.sin())

    @staticmethod
    def backward(ctx, y_bar):
        cos, sin = ctx.saved_tensors
        return rotated(y_bar, cos, -sin)


class RotaryInHalf(Rotary):
    @staticmethod
    def angles(x):
        return Rotary.angles(x.to(torch.float32)).to(x.dtype)


class RotaryInHalfAtOne(Rotary):
    """As of what jumps, its mistake is gone a little aside."""

    @staticmethod
    def angles(x):
        return (RotaryInHalf if bool((x == 1).all()) else Rotary).angles(x)


def rotary(x):
    angle = Rotary.angles(x)
    return rotated(x, angle.cos(), angle.sin())


class Normed(Function):
    """Rows over their standard deviation; of small ones the square is near the number that is added to it."""

    @staticmethod
    def kept(variance, dtype):
        return variance

    @classmethod
    def forward(cls, ctx, x):
        wide = x.float()
        scale = (cls.kept(wide.square().mean(-1, keepdim=True), x.dtype).float() + 1e-7).rsqrt()
        ctx.save_for_backward(wide, scale)
        return (wide * scale).to(x.dtype)

    @staticmethod
    def backward(ctx, y_bar):
        x, scale = ctx.saved_tensors
        g = y_bar.float()
        return ((g - x * scale**2 * (g * x).mean(-1, keepdim=True)) * scale).to(y_bar.dtype)


class NormedInHalf(Normed):
    @staticmethod
    def kept(variance, dtype):
        return variance.to(dtype)


def normed(x):
    wide = x.float()
    return (wide * (wide.square().mean(-1, keepdim=True) + 1e-7).rsqrt()).to(x.dtype)


class Softmax(Function):
    """Rounds each step to the dtype of the call, as it may."""

    @staticmethod
    def forward(ctx, x):
        e = (x - x.amax(-1, keepdim=True)).exp()
        y = e / e.sum(-1, keepdim=True)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, y_bar):
        (y,) = ctx.saved_tensors
        return y * (y_bar - (y * y_bar).sum(-1, keepdim=True))


def judged(function, call, law, **how):
    (verdict,) = audit(function, [call], laws=[law], jobs=1, **how).report.of(law=law)
    return verdict


def line_of(text):
    lines = [line.strip() for line in Path(__file__).read_text(encoding="utf-8").splitlines()]
    return f"{Path(__file__).name}:{lines.index(text) + 1}"


@pytest.mark.parametrize("law", ["primal", "vjp"])
@pytest.mark.parametrize(
    ("function", "call", "reference", "line"),
    [
        (RotaryInHalf, POSITIONS, rotary, "return Rotary.angles(x.to(torch.float32)).to(x.dtype)"),
        (NormedInHalf, SMALL, normed, "return variance.to(dtype)"),
    ],
)
def test_what_the_reference_has_in_float32_is_asked_for(function, call, reference, line, law):
    verdict = judged(function, call, law, reference=reference)

    assert (verdict.status, rank_of(verdict)) == (Status.BROKEN, Rank.WRONG)
    assert "times as far as the reference" in verdict.finding.message
    assert verdict.finding.reason.kind == "rounded at"
    assert verdict.finding.reason.evidence["line"] == line_of(line)


@pytest.mark.parametrize("law", ["primal", "vjp"])
@pytest.mark.parametrize(
    ("function", "call", "reference"),
    [
        (Rotary, POSITIONS, rotary),
        (Normed, SMALL, normed),
        (RotaryInHalfAtOne, "(ones(2, 200, 16, dtype=bfloat16),)", rotary),
        (Softmax, "(randn(6, 300, dtype=bfloat16),)", lambda x: x.softmax(-1)),
        (Softmax, "(8 * randn(6, 300, dtype=float16),)", lambda x: x.softmax(-1)),
    ],
)
def test_what_is_as_near_as_the_reference_holds(function, call, reference, law):
    assert judged(function, call, law, reference=reference).status is Status.HOLDS


def test_what_is_declared_decides():
    how = {"reference": normed, "accuracy": Accuracy(store=torch.float16)}

    assert judged(NormedInHalf, SMALL, "primal", **how).status is Status.HOLDS


@pytest.mark.parametrize(
    ("function", "call", "line"),
    [
        (RotaryInHalf, POSITIONS, "return Rotary.angles(x.to(torch.float32)).to(x.dtype)"),
        (NormedInHalf, SMALL, "return variance.to(dtype)"),
    ],
)
def test_without_a_reference_it_is_lost_digits_and_no_mistake(function, call, line):
    verdict = judged(function, call, "surrogate")

    assert (verdict.status, rank_of(verdict)) == (Status.BROKEN, Rank.WASTE)
    assert verdict.finding.reason.evidence["line"] == line_of(line)


@pytest.mark.parametrize(("function", "call"), [(Rotary, POSITIONS), (Normed, SMALL)])
def test_without_a_reference_what_is_in_float32_holds(function, call):
    assert judged(function, call, "surrogate").status is Status.HOLDS
