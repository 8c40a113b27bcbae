"""Sound functions that were called wrong: numbers that no narrow dtype has, and outputs that are no numbers."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

from gradspec import Accuracy, audit
from gradspec.law import Status

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


class Log1mExp(Function):
    """log(1 - exp(-x)) of numbers above 0, of which a step of differences is larger than some."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return log1mexp(x)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar / torch.expm1(x)


def log1mexp(x):
    return torch.where(x > 0.693, torch.log1p(-torch.exp(-x)), torch.log(-torch.expm1(-x)))


def test_a_second_derivative_beside_the_end_of_a_domain_is_judged_by_steps_in_proportion():
    report = audit(Log1mExp, ["(tensor([1e-12, 1e-6, 0.5, 0.7, 30.0]),)"], laws=["second_order"]).report

    assert report.failures == ()


class Root(Function):
    """A square root by a few steps, exact to nine digits."""

    @staticmethod
    def forward(ctx, a):
        y = root(a)
        ctx.save_for_backward(a)
        return y

    @staticmethod
    def backward(ctx, y_bar):
        (a,) = ctx.saved_tensors
        return y_bar / (2 * root(a)) * (1 + 1e-9)


def root(a):
    y = (1 + a) / 2
    for _ in range(6):
        y = (y + a / y) / 2
    return y


@pytest.mark.parametrize(("rtol", "holds"), [(1e-8, True), (1e-12, False)])
def test_a_declared_accuracy_counts_without_a_reference(rtol, holds):
    made = audit(Root, ["(rand(4) + 0.5,)"], laws=["surrogate", "second_order"], accuracy=Accuracy(rtol=rtol))

    assert ({verdict.status for verdict in made.report.verdicts} == {Status.HOLDS}) is holds


class Angle(Function):
    """The length and the direction of a point; at the origin its gradient is zero."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return torch.hypot(x, y)

    @staticmethod
    def backward(ctx, y_bar):
        x, y = ctx.saved_tensors
        r = torch.hypot(x, y)
        safe = torch.where(r > 0, r, torch.ones_like(r))
        return y_bar * x / safe, y_bar * y / safe


def test_what_a_reference_does_not_know_accuses_no_second_derivative():
    call = "(tensor([0.0, 1.0, 2.0]), tensor([0.0, 1.0, -0.5]))"
    report = audit(Angle, [call], reference=torch.hypot, laws=["second_order"]).report

    assert report.failures == ()
