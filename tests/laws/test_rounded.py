"""What has the digits of a float32: which argument or cotangent is rounded is said where moving it shows so."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

from gradspec import Accuracy, FunctionSpec, verify

X, W = (torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))


def times(x, w):
    return x * w


class RoundsAnArgument(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x.float().double() * w

    @staticmethod
    def backward(ctx, y_bar):
        x, w = ctx.saved_tensors
        return y_bar * w, y_bar * x


class RoundsTheSine(Function):
    """The second factor has all digits: only the way of `x` to the value is short."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x.float().sin().double() * w

    @staticmethod
    def backward(ctx, y_bar):
        x, w = ctx.saved_tensors
        return y_bar * x.cos() * w, y_bar * x.sin()


def sine(x, w):
    return x.sin() * w


class RoundsNothing(Function):
    """A constant is as short as a float32, and no number on the way is one."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w / (1 + 1e-7 * w * w)

    @staticmethod
    def backward(ctx, y_bar):
        x, w = ctx.saved_tensors
        return y_bar * w, y_bar * x


def primal(function, right, **more):
    spec = FunctionSpec(function.apply, right, cases=[(X, W)], name="short", **more)
    (verdict,) = verify([spec], laws=["primal"], isolate=False).verdicts
    return verdict.finding


@pytest.mark.parametrize(("function", "right"), [(RoundsAnArgument, times), (RoundsTheSine, sine)])
def test_which_argument_is_rounded_is_said(function, right):
    found = primal(function, right)

    assert found.reason.kind == "rounded"
    assert found.reason.evidence == {"what": "`x`", "result": "the value"}
    assert "`x` is rounded to float32 on the way to the value" in found.likely


def test_of_what_rounds_nothing_no_rounding_is_said():
    found = primal(RoundsNothing, times)

    assert found.reason.kind == "digits"
    assert "float32" in found.likely
    assert "rounded" not in found.likely


def test_what_is_as_short_on_purpose_can_be_declared():
    assert primal(RoundsNothing, times, accuracy=Accuracy(rtol=1e-6)).message == ""


# Of what has no source no line is tried.
hands_on = eval("lambda y_bar, x, w: (y_bar.float().double() * w, y_bar.float().double() * x)")


class RoundsTheCotangent(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, y_bar):
        return hands_on(y_bar, *ctx.saved_tensors)


def test_a_cotangent_that_is_rounded_is_said():
    spec = FunctionSpec(RoundsTheCotangent.apply, times, cases=[(X, W)], name="short")
    (verdict,) = verify([spec], laws=["vjp"], isolate=False).verdicts

    assert verdict.finding.reason.evidence == {"what": "the cotangent", "result": "the gradient of `x`"}
