"""An audit on a case that lies on a kink: the function is judged beside it, and must choose a derivative near it."""

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.law import Status
from gradspec.laws import LAWS

AT_ZERO = "(tensor([-1.0, 0.0, 2.0]),)"


class Rectified(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar * (x > 0)


class Twice(Rectified):
    @staticmethod
    def backward(ctx, y_bar):
        return 2 * Rectified.backward(ctx, y_bar)


class HundredAtZero(Rectified):
    """Right beside the kink; no derivative near is as large as the one that backward chooses there."""

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return Rectified.backward(ctx, y_bar) + 100 * y_bar * (x == 0)


class Hinge(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (1 - x).clamp(min=0).sum()

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return -y_bar * (x < 1)


class HingeOfTheWrongSign(Hinge):
    @staticmethod
    def backward(ctx, y_bar):
        return -Hinge.backward(ctx, y_bar)


class SquareOfRectified(Rectified):
    """The gradient itself has a kink."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0).square()

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return 2 * y_bar * x.relu()


class Detached(SquareOfRectified):
    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return 2 * y_bar * x.relu().detach()


def largest(x):
    return x.max(-1).values


def found(function, case, law):
    (verdict,) = audit(function, [case], laws=[one for one in LAWS if one.name == law]).report.verdicts
    return verdict.status, verdict.finding.message


@pytest.mark.parametrize(
    ("function", "case"),
    [
        (Rectified, AT_ZERO),
        (torch.relu, AT_ZERO),
        (torch.relu, "(zeros(30),)"),
        (torch.relu, "(tensor([-1.0, 0.0, 2.0], dtype=float32),)"),
        (torch.nn.functional.relu6, "(tensor([-1.0, 0.0, 6.0]),)"),
        (torch.nn.functional.hardswish, "(tensor([-3.0, 3.0, 1.0]),)"),
        (largest, "(tensor([[1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 1.0, 1.0]]),)"),
        (Hinge, "(tensor([1.0, 2.0, 0.0]),)"),
    ],
)
def test_a_sound_function_on_a_kink_is_not_accused(function, case):
    status, message = found(function, case, "surrogate")

    assert status is Status.NOT_MEASURED
    assert "the one-sided derivatives differ: the case lies on a kink" in message
    assert "beside it, up to 0.05 away, the law holds" in message


@pytest.mark.parametrize(("function", "case"), [(Twice, AT_ZERO), (HingeOfTheWrongSign, "(tensor([1.0, 2.0, 0.0]),)")])
def test_a_backward_that_is_wrong_beside_the_kink_is_broken(function, case):
    assert found(function, case, "surrogate")[0] is Status.BROKEN


def test_a_choice_that_is_near_no_derivative_does_not_hold():
    status, message = found(HundredAtZero, AT_ZERO, "surrogate")

    assert status is Status.INCONCLUSIVE
    assert "near it no derivative was found as the one that it chooses" in message


def test_a_gradient_with_a_kink_is_differentiated_beside_it():
    status, message = found(SquareOfRectified, AT_ZERO, "second_order")

    assert status is Status.NOT_MEASURED
    assert "the backward pass has a kink in `x` here" in message
    assert found(Detached, AT_ZERO, "second_order")[0] is Status.BROKEN
