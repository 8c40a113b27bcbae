"""An audit differentiates the backward pass, and holds autograd's answer to central differences of it."""

import pytest
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from gradspec import audit
from gradspec.law import Rank, Status
from gradspec.laws import LAWS

SECOND = [law for law in LAWS if law.name == "second_order"]


class Sine(Function):
    """The old style, and sound: what backward needs is saved."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar * x.cos()


class KeepsAnIntermediate(Sine):
    """The slope is computed in forward, where autograd does not look."""

    @staticmethod
    def forward(ctx, x):
        ctx.slope = x.cos()
        return x.sin()

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar * ctx.slope


class DetachesAll(Sine):
    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return (y_bar * x.cos()).detach()


class DetachesTheCotangent(Sine):
    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar.detach() * x.cos()


class NotANumber(Sine):
    """The gradient is right; that of the root of zero is not a number."""

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar * x.cos() + ((x - x) ** 2).sum().sqrt() * y_bar


class HalfCut(Sine):
    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar * x.cos() * (1 + x.detach() ** 2)


class Once(Sine):
    @staticmethod
    @once_differentiable
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar * x.cos()


class StraightThrough(Sine):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar


class InSingle(KeepsAnIntermediate):
    @staticmethod
    def forward(ctx, x):
        if x.dtype != torch.float32:
            raise TypeError("wants float32")
        return KeepsAnIntermediate.forward(ctx, x)


def second(function, case="(randn(2, 3),)"):
    (verdict,) = audit(function, [case], laws=SECOND).report.verdicts
    return verdict


@pytest.mark.parametrize("function", [Sine, StraightThrough])
def test_a_backward_that_can_be_differentiated_holds(function):
    assert second(function).status is Status.HOLDS


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (KeepsAnIntermediate, "the second derivative with respect to `x` is lost silently"),
        (DetachesTheCotangent, "the second derivative with respect to the cotangent is lost silently"),
        (DetachesAll, "the gradient has no history: a second derivative through it is lost silently"),
        (NotANumber, "the second derivative with respect to `x` is NaN"),
        (HalfCut, "the second derivative with respect to `x` is not that of the backward pass"),
        (InSingle, "the second derivative with respect to `x` is lost silently"),
    ],
)
def test_a_second_derivative_that_is_wrong_says_how_and_is_wrong_silently(function, said):
    verdict = second(function)

    assert (verdict.status, verdict.finding.rank, verdict.finding.message) == (Status.BROKEN, Rank.WRONG, said)


def test_a_backward_that_refuses_a_second_derivative_breaks_no_promise():
    verdict = second(Once)

    assert verdict.status is Status.NOT_PROMISED
    assert "marked with @once_differentiable" in verdict.finding.message


def test_where_backward_jumps_nothing_is_said():
    class Kink(Sine):
        @staticmethod
        def backward(ctx, y_bar):
            (x,) = ctx.saved_tensors
            return y_bar * (x > 0)

    verdict = second(Kink, "(zeros(2),)")

    assert verdict.status is Status.NOT_MEASURED
    assert "the backward pass is not smooth in `x` here" in verdict.finding.message


class KeepsASquare(Function):
    """What is left of the second derivative of a penalty is two thirds of it."""

    @staticmethod
    def forward(ctx, x):
        ctx.doubled = 2 * x
        return ctx.doubled**2

    @staticmethod
    def backward(ctx, y_bar):
        return 4 * ctx.doubled * y_bar


def test_a_result_of_forward_that_is_kept_is_the_cause_also_where_a_factor_is_left():
    report = audit(KeepsASquare, ["(randn(3, 4),)"], laws=["second_order"], reference=lambda x: 4 * x * x).report

    (verdict,) = report.violations
    assert verdict.finding.likely.startswith("backward uses a result of forward, which knows no graph there")
