"""An audit of a case in float32 or less holds the gradient in its dtype to the one in float64."""

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.law import Rank, Status
from gradspec.laws import LAWS

LOW = ("float32", "bfloat16", "float16")


class Square(Function):
    """Right in every dtype."""

    wrong: tuple[torch.dtype, ...] = ()

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @classmethod
    def backward(cls, ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar * x * (1 if x.dtype in cls.wrong else 2)


class FastInSingle(Square):
    wrong = (torch.float32,)


class FastInHalf(Square):
    wrong = (torch.bfloat16, torch.float16)


class NormInSingle(Function):
    """The root mean square, computed in float32 whatever the dtype."""

    factor = 1

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)

    @classmethod
    def backward(cls, ctx, y_bar):
        (x,) = ctx.saved_tensors
        r = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)
        n, v = x.float() * r, cls.factor * y_bar.float()
        return (r * (v - n * (v * n).mean(-1, keepdim=True))).to(x.dtype)


class TwiceInSingle(NormInSingle):
    factor = 2


def confident(x):
    """A loss whose gradient is what is left of 1 - 1."""
    return torch.nn.functional.cross_entropy(20 * x, x.argmax(-1))


def found(function, case):
    (verdict,) = audit(function, [case], laws=[law for law in LAWS if law.name == "surrogate"]).report.verdicts
    return verdict


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("function", [Square, confident, torch.nn.functional.dropout, NormInSingle])
def test_a_gradient_that_is_off_by_rounding_holds(function, dtype):
    assert found(function, f"(randn(8, 5, dtype={dtype}),)").status is Status.HOLDS


@pytest.mark.parametrize(("function", "wrong"), [(FastInSingle, LOW[:1]), (FastInHalf, LOW[1:])])
def test_a_gradient_that_is_wrong_in_one_dtype_is_broken_in_it(function, wrong):
    for dtype in LOW:
        verdict = found(function, f"(randn(3, dtype={dtype}),)")

        if dtype not in wrong:
            assert verdict.status is Status.HOLDS
            continue
        assert (verdict.status, verdict.finding.rank) == (Status.BROKEN, Rank.WRONG)
        assert verdict.finding.message == f"the gradient in {dtype} is not the one that backward returns in float64"
        assert f"a wrong backward in {dtype}: in float64 it is right" in verdict.finding.likely


@pytest.mark.slow
def test_what_computes_in_single_precision_inside_is_judged_by_its_digits():
    verdict = found(TwiceInSingle, "(randn(2, 5, dtype=float32),)")

    assert verdict.status is Status.BROKEN
    assert "in place of `cls.factor * y_bar.float()`" in verdict.finding.likely


def test_values_that_overflow_accuse_nobody():
    def overflows(x):
        return (x * 1e4).square().sqrt()

    assert found(overflows, "(randn(4, dtype=float32),)").status is Status.HOLDS
    verdict = found(overflows, "(randn(4, dtype=float16),)")

    assert verdict.status is Status.NOT_MEASURED
    assert "in float64 the law holds; the values in float16 are not those in float64" in verdict.finding.message
