"""Tensors inside a list, which torch does not see: a Function that is given some gets no gradient, and says nothing."""

from typing import NamedTuple

import pytest
import torch
from torch.autograd import Function

from gradspec import Case, audit
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


class Parameters(NamedTuple):
    decay: torch.Tensor
    method: str = "exact"


class Leak(Function):
    """Takes its numbers as a named tuple, by their names."""

    @staticmethod
    def forward(ctx, x, parameters):
        ctx.parameters = parameters
        return x * parameters.decay if parameters.method == "exact" else x

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar * ctx.parameters.decay, None


class Filtered(Function):
    """Takes constants in a list."""

    @staticmethod
    def forward(ctx, x, filters):
        ctx.filters = filters
        return x * filters[0] + x * filters[1]

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar * ctx.filters[0] + y_bar * ctx.filters[1], None


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


def with_constants(function, *constants, asks=False):
    """Return what is said of a call in which the first argument is trained, and the constants only if they ask."""
    held = type(constants)(c.requires_grad_(asks) if isinstance(c, torch.Tensor) else c for c in constants)
    given = Parameters(*held) if function is Leak else list(held)
    return judged(function, Case(name="a call", args=(torch.randn(3, requires_grad=True), given)))


def test_a_named_tuple_arrives_as_one():
    verdict, found = with_constants(Leak, torch.tensor(0.5))

    assert verdict.status is Status.HOLDS, found


def test_constants_in_a_list_are_not_lost_beside_a_tensor_that_is_trained():
    verdict, found = with_constants(Filtered, torch.rand(3), torch.rand(3))
    assert verdict.status is Status.HOLDS, found

    verdict, _ = with_constants(Filtered, torch.rand(3), torch.rand(3), asks=True)
    assert (verdict.status, verdict.finding.rank) == (Status.BROKEN, Rank.WRONG)
    assert verdict.finding.likely == "torch sees no tensors inside a list: pass them as *filters"
