"""Tensors inside a list, which torch does not see: a Function that is given some gets no gradient, and says nothing."""

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.law import Rank, Status
from gradspec.laws import LAWS

SURROGATE = [law for law in LAWS if law.name == "surrogate"]


class Cat(Function):
    @staticmethod
    def forward(ctx, xs, dim):
        ctx.dim, ctx.sizes = dim, [x.shape[dim] for x in xs]
        return torch.cat(xs, dim)

    @staticmethod
    def backward(ctx, y_bar):
        return list(y_bar.split(ctx.sizes, ctx.dim)), None


class Weighted(Function):
    """A sum of a list, times a tensor that torch does see."""

    @staticmethod
    def forward(ctx, xs, weight):
        ctx.total = sum(xs)
        return ctx.total * weight

    @staticmethod
    def backward(ctx, y_bar):
        return None, y_bar * ctx.total


class Sum(Function):
    """As it should be written."""

    @staticmethod
    def forward(ctx, *xs):
        ctx.count = len(xs)
        return sum(xs)

    @staticmethod
    def backward(ctx, y_bar):
        return (y_bar,) * ctx.count


class OnlyForward(Function):
    @staticmethod
    def forward(ctx, xs):
        return sum(xs)


def joined(parts, dim):
    return Cat.apply([2 * part for part in parts], dim)


def judged(function, case):
    found = audit(function, [case], laws=SURROGATE)
    (verdict,) = found.report.verdicts
    return verdict, found


@pytest.mark.parametrize(
    ("function", "case", "name"),
    [
        (Cat, "([randn(2), randn(3)], 0)", "xs"),
        (Cat.apply, "((randn(2), randn(3)), 0)", "xs"),
        (Weighted, "([randn(2), randn(2)], randn(2))", "xs"),
        (joined, "([randn(2), randn(3)], 0)", "parts"),
    ],
)
def test_tensors_in_a_list_are_lost_silently(function, case, name):
    verdict, found = judged(function, case)

    assert (verdict.status, verdict.finding.rank) == (Status.BROKEN, Rank.WRONG)
    assert verdict.finding.likely == f"torch sees no tensors inside a list: pass them as *{name}"
    assert f"# TODO: hand `{name}` on as *{name}: no gradient reaches the tensors in a list\n" in found.proposal
    assert not [
        remark for remark in found.remarks if "No gradient reaches" in remark or "backward returns no" in remark
    ]


@pytest.mark.parametrize(
    ("function", "case"),
    [
        (Sum, "(randn(2), randn(2))"),
        (lambda xs: Sum.apply(*xs), "([randn(2), randn(2)],)"),
        (lambda xs: torch.cat(xs), "([randn(2), randn(2)],)"),
    ],
)
def test_a_list_that_torch_sees_into_is_sound(function, case):
    assert judged(function, case)[0].status is Status.HOLDS


def test_what_has_no_backward_loses_nothing():
    assert judged(OnlyForward, "([randn(2), randn(2)],)")[0].status is Status.NOT_APPLICABLE


def test_apply_is_torchs_own_afterwards():
    before = Function.__dict__.get("apply")
    judged(joined, "([randn(2), randn(3)], 0)")

    assert Function.__dict__.get("apply") is before
