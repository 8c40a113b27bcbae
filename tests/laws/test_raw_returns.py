"""What backward returns is held to the argument that it is a gradient of, wherever a wrapper puts that."""

from __future__ import annotations

from torch.autograd import Function

from gradspec import FunctionSpec, verify
from gradspec.law import Status


class Scaled(Function):
    @staticmethod
    def forward(ctx, k, y, w):
        ctx.save_for_backward(y, w)
        ctx.k = k
        return k * y * w

    @staticmethod
    def backward(ctx, g):
        y, w = ctx.saved_tensors
        return None, ctx.k * g * w, (ctx.k * g * y).sum()


class NotSummed(Scaled):
    @staticmethod
    def backward(ctx, g):
        y, w = ctx.saved_tensors
        return None, ctx.k * g * w, ctx.k * g * y


def judged(function):
    spec = FunctionSpec(
        name="scaled",
        function=lambda y, w: function.apply(2.0, y, w),
        implementation=function,
        primal=lambda y, w: 2 * y * w,
        cases=lambda make: [(make(5), make())],
    )
    (verdict,) = verify([spec], laws=["raw_returns"]).of(law="raw_returns")
    return verdict


def test_a_wrapper_may_give_arguments_in_another_order():
    assert judged(Scaled).status is Status.HOLDS
    wrong = judged(NotSummed)
    assert wrong.status is Status.BROKEN
    assert "for `w`" in wrong.finding.message


class WithASpareNone(Scaled):
    """Return one None more than there are arguments, as torch allows."""

    @staticmethod
    def backward(ctx, g):
        return *Scaled.backward(ctx, g), None


def test_a_spare_none_shifts_no_argument():
    assert judged(WithASpareNone).status is Status.HOLDS
