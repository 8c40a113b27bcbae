"""What follows from a wrong value where forward keeps it for backward: of a Function and of an operator alike."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch._library.custom_ops import CustomOpDef
from torch.autograd import Function

from gradspec import Case, FunctionSpec, OperatorSpec, Status, audit, verify
from gradspec._engine._child import available
from gradspec.laws import LAWS

CHOSEN = [law for law in LAWS if law.name in ("primal", "vjp", "cotangent_layout", "undefined_cotangent")]


def padded(x: Tensor) -> Tensor:
    return x.exp() / (x.exp().sum() + 1)


def overflowing(x: Tensor) -> Tensor:
    return (1000 + x).exp() / (1000 + x).exp().sum()


class Softmax(Function):
    forward_of = staticmethod(padded)

    @classmethod
    def forward(cls, ctx, x):
        y = cls.forward_of(x)
        ctx.save_for_backward(y)
        return y

    @classmethod
    def backward(cls, ctx, y_bar):
        return backward(ctx, y_bar)


class Overflowing(Softmax):
    forward_of = staticmethod(overflowing)


def backward(ctx, y_bar):
    (y,) = ctx.saved_tensors
    return y * (y_bar - (y * y_bar).sum())


def doubled(ctx, y_bar):
    return 2 * backward(ctx, y_bar)


def operator(name: str, forward, backward):
    made = torch.library.custom_op(f"causes_of_operators::{name}", forward, mutates_args=())
    made.register_fake(torch.empty_like)
    made.register_autograd(backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output))
    return made


def of(function):
    promise = {
        "primal": lambda x: x.softmax(0),
        "cases": [Case(torch.tensor([-3.0, -1.0, -2.0]).double())],
        "name": "s",
    }
    kind = OperatorSpec if isinstance(function, CustomOpDef) else FunctionSpec
    return kind(function, **promise)


PADDED, DOUBLED = operator("padded", padded, backward), operator("doubled", padded, doubled)
OVERFLOWING = operator("overflowing", overflowing, backward)


@pytest.mark.parametrize("function", [Softmax.apply, Overflowing.apply, PADDED, OVERFLOWING])
def test_a_gradient_that_is_right_with_the_right_output_follows_from_the_wrong_one(function):
    report = verify([of(function)], CHOSEN)
    broken = {v.law: v.finding.follows for v in report.verdicts if v.status is Status.BROKEN}

    assert broken.pop("primal") == ""
    assert broken.pop("vjp") == "primal"
    assert "cotangent_layout" in broken
    assert set(broken.values()) <= {"primal", "vjp"}


def test_a_gradient_that_is_wrong_with_the_right_output_too_follows_from_nothing():
    (verdict,) = verify([of(DOUBLED)], CHOSEN).of(law="vjp")

    assert verdict.finding.follows == ""


class Rounds(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.softmax(0)
        ctx.save_for_backward(y.bfloat16())
        return y

    @staticmethod
    def backward(ctx, y_bar):
        y = ctx.saved_tensors[0].to(y_bar.dtype)
        return y * (y_bar - (y * y_bar).sum())


def test_a_saved_tensor_that_is_rounded_is_named_so():
    (verdict,) = verify([of(Rounds.apply)], CHOSEN).of(law="vjp")

    assert verdict.finding.likely == (
        "right once the output stands in for saved tensor 0 (the output, rounded to bfloat16) in the gradient of `x`"
    )


TWICE = torch.library.custom_op(
    "causes_of_operators::twice", lambda x: 2 * x, mutates_args=(), schema="(Tensor x) -> Tensor"
)
TWICE.register_fake(lambda x: x.new_empty(x.shape, dtype=torch.float32))
TWICE.register_autograd(lambda ctx, y_bar: 2 * y_bar)


@pytest.mark.skipif(not available("cpu"), reason="needs a child process")
def test_what_asks_a_wrong_fake_kernel_follows_from_it_where_a_right_one_mends_it():
    laws = ["fake", "fake_kernel", "needs_input_grad"]
    verdicts = audit(TWICE, ["(randn(3),)"], laws=laws).report.verdicts

    found = {verdict.law: verdict.finding for verdict in verdicts}
    assert found["fake_kernel"].likely == "the fake kernel says otherwise than the real one does"
    assert (found["fake"].follows, found["fake_kernel"].follows) == ("fake_kernel", "")
