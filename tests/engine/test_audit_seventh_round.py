"""What a seventh round of functions by somebody who had not seen the engine found wrong in the answers of an audit."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

from gradspec import CheckError, audit, check
from gradspec.findings import findings


def found(*args, **how):
    return findings(audit(*args, **how).report)


class FusedLoss(Function):
    """A gradient is assigned only where it is asked for, and saved in any case."""

    @staticmethod
    def forward(ctx, x, w):
        if x.requires_grad:
            x_bar = w.expand_as(x)
        if w.requires_grad:
            w_bar = x.sum(0)
        ctx.save_for_backward(x_bar, w_bar)
        return (x * w).sum()

    @staticmethod
    def backward(ctx, loss_bar):
        x_bar, w_bar = ctx.saved_tensors
        return loss_bar * x_bar, loss_bar * w_bar


@pytest.mark.parametrize(
    ("case", "where", "name"),
    [
        ("(randn(4, 3), randn(3))", "no argument requires a gradient, as in evaluation", "x_bar"),
        ("(randn(4, 3, requires_grad=True), randn(3))", "no argument but `x` requires a gradient", "w_bar"),
    ],
)
def test_what_raises_for_an_argument_that_is_not_trained_is_told_as_that(case, where, name):
    (one,) = found(FusedLoss, [case])

    finding = one.verdict.finding
    assert finding.message.startswith(f"forward raises where {where}, and not where `x` and `w` do: UnboundLocalError")
    assert f"'{name}'" in finding.message
    assert finding.details["place"].endswith("in forward")
    assert "only some ways through forward assign it" in finding.likely


def test_a_check_of_it_is_a_check_error_and_false():
    inputs = (torch.randn(4, 3, requires_grad=True), torch.randn(3, requires_grad=True))
    assert check(FusedLoss, inputs, raise_exception=False) is False
    with pytest.raises(CheckError, match="forward raises where no argument requires a gradient"):
        check(FusedLoss, inputs)


def test_what_raises_in_any_case_is_said_of_the_arguments():
    class Shaped(FusedLoss):
        @staticmethod
        def forward(ctx, x, w):
            raise ValueError("x has to have 7 columns")

    (one,) = found(Shaped, ["(randn(4, 3), randn(3))"])
    assert one.verdict.finding.message.startswith("a plain call raises ValueError: x has to have 7 columns")
