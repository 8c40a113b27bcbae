"""A mistake in one expression of backward is said with its line and with what the expression should be."""

from pathlib import Path

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.findings import findings

LINES = Path(__file__).read_text(encoding="utf-8").splitlines()


class Softmax(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.softmax(-1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, y_bar):
        _, y = ctx.saved_tensors
        return y * (y_bar - (y_bar * y).sum(-1, keepdim=True))


class OtherSign(Softmax):
    @staticmethod
    def backward(ctx, y_bar):
        _, y = ctx.saved_tensors
        return y * (y_bar + (y_bar * y).sum(-1, keepdim=True))


class OtherReduction(Softmax):
    @staticmethod
    def backward(ctx, y_bar):
        _, y = ctx.saved_tensors
        return y * (y_bar - (y_bar * y).mean(-1, keepdim=True))


class OtherDimension(Softmax):
    @staticmethod
    def backward(ctx, y_bar):
        _, y = ctx.saved_tensors
        return y * (y_bar - (y_bar * y).sum(0, keepdim=True))


class OtherSaved(Softmax):
    @staticmethod
    def backward(ctx, y_bar):
        y, _ = ctx.saved_tensors
        return y * (y_bar - (y_bar * y).sum(-1, keepdim=True))


class Silu(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * x.sigmoid() * w

    @staticmethod
    def backward(ctx, y_bar):
        x, w = ctx.saved_tensors
        s = x.sigmoid()
        slope = s * (1 + x)
        return y_bar * slope * w, (y_bar * x * s).sum(0)


def doubled(value, least):
    """Double a number until it is large, which takes for ever if it is negative."""
    while value < least:
        value = value * 2
    return value


class Loops(Softmax):
    """Hangs where the argument of its loop has another sign."""

    @staticmethod
    def backward(ctx, y_bar):
        _, y = ctx.saved_tensors
        scale = doubled(y.sum(), 10)
        return 3 * y * y_bar + scale


class Random(Softmax):
    """Wrong in no way that one expression mends."""

    @staticmethod
    def backward(ctx, y_bar):
        x, y = ctx.saved_tensors
        return y_bar * y.square() + x.cos() * y_bar.flip(0)


def said(function, call, **how):
    (found, *_) = findings(audit(function, [call], laws=["vjp", "surrogate"], jobs=1, **how).report)
    return found.verdict.finding


@pytest.mark.parametrize("with_reference", [True, False])
@pytest.mark.parametrize(
    ("function", "new", "old"),
    [
        (OtherSign, "y_bar - (y_bar * y).sum(-1, keepdim=True)", "y_bar + (y_bar * y).sum(-1, keepdim=True)"),
        (OtherReduction, "(y_bar * y).sum(-1, keepdim=True)", "(y_bar * y).mean(-1, keepdim=True)"),
        (OtherDimension, "(y_bar * y).sum(1, keepdim=True)", "(y_bar * y).sum(0, keepdim=True)"),
    ],
)
def test_the_expression_that_makes_the_gradient_right_is_named(function, new, old, with_reference):
    how = {"reference": lambda x: x.softmax(-1)} if with_reference else {}
    before = function.backward
    finding = said(function, "(randn(3, 4),)", **how)

    line = next(n for n, text in enumerate(LINES, 1) if old in text)
    assert finding.likely.startswith(f"right with `{new}` in place of `{old}` (test_repaired.py:{line}, in backward)")
    assert function.backward is before


def test_a_factor_that_is_missing_within_is_named():
    finding = said(Silu, "(randn(3, 4), randn(4))", reference=lambda x, w: x * x.sigmoid() * w)

    said_so = "right with `slope = s * (1 + x * (1 - s))` in place of `slope = s * (1 + x)` (test_repaired.py:"
    assert finding.likely.startswith(said_so)


def test_what_no_expression_mends_is_not_said():
    finding = said(Random, "(randn(3, 4),)", reference=lambda x: x.softmax(-1))

    assert finding.reason is None or finding.reason.kind != "repair"


def test_a_loop_that_does_not_end_in_another_reading_ends():
    finding = said(Loops, "(randn(3, 4),)", reference=lambda x: x.softmax(-1))

    assert finding.message.startswith("gradient of `x`")
    assert finding.reason is None or finding.reason.kind != "repair"


def test_a_backward_that_holds_names_of_another_function_is_left_alone():
    factor = torch.tensor(2.0)

    class Within(Softmax):
        @staticmethod
        def backward(ctx, y_bar):
            _, y = ctx.saved_tensors
            return y * (y_bar + factor * (y_bar * y).sum(-1, keepdim=True) / 2)

    finding = said(Within, "(randn(3, 4),)", reference=lambda x: x.softmax(-1))
    assert finding.reason is None or finding.reason.kind != "repair"
