"""Sound functions that were called wrong: numbers that no narrow dtype has, and outputs that are no numbers."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

from gradspec import audit

LAWS = ["primal", "vjp", "surrogate", "precision", "autocast"]


class Hypot(Function):
    """The root of two squares, of numbers whose squares overflow."""

    @staticmethod
    def forward(ctx, x, y):
        big = torch.maximum(x.abs(), y.abs())
        root = big * ((x / big).square() + (y / big).square()).sqrt()
        ctx.save_for_backward(x, y, root)
        return root

    @staticmethod
    def backward(ctx, y_bar):
        x, y, root = ctx.saved_tensors
        return tuple(
            y_bar * (one / root) if asked else None for one, asked in zip((x, y), ctx.needs_input_grad, strict=True)
        )


class First(Function):
    """The largest elements, their places, and whether they are tied; the gradient goes to the first of each."""

    @staticmethod
    def forward(ctx, x):
        value, place, tied = first(x)
        ctx.shape = x.shape
        ctx.save_for_backward(place)
        ctx.mark_non_differentiable(place, tied)
        return value, place, tied

    @staticmethod
    def backward(ctx, y_bar, *_):
        (place,) = ctx.saved_tensors
        return y_bar.new_zeros(ctx.shape).scatter_(-1, place.unsqueeze(-1), y_bar.unsqueeze(-1))


def first(x):
    hit = x == x.amax(-1, keepdim=True)
    place = hit.to(torch.int8).argmax(-1)
    return x.gather(-1, place.unsqueeze(-1)).squeeze(-1), place, hit.sum(-1) > 1


@pytest.mark.parametrize("reference", [True, False], ids=["reference", "alone"])
@pytest.mark.parametrize(
    ("function", "plain", "call"),
    [
        (Hypot, torch.hypot, "(1e200 * randn(5), 1e200 * randn(5))"),
        (First, first, "(tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 0.5], [0.1, 0.2, 0.3]]),)"),
        (First, first, "(randn(3, 4),)"),
    ],
    ids=["large", "tied", "places"],
)
def test_nothing_is_said_against_it(function, plain, call, reference):
    report = audit(function, [call], reference=plain if reference else None, laws=LAWS).report

    assert report.failures == ()
    asked = LAWS if reference else LAWS[2:]  # alone there is nothing else that says what is right
    assert {verdict.law for verdict in report.verdicts} == {*asked}
