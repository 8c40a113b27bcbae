"""What is wrong with a gradient that is not linear, where that is meant; what the spec cannot compute is no finding."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

from gradspec import FunctionSpec, Supports, verify
from gradspec._registry._laws import select_laws
from gradspec.law import Status


class Clips(Function):
    """The identity; backward clips each row to a norm."""

    @staticmethod
    def forward(ctx, x, most):
        ctx.most = most
        return x.clone()

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar * (ctx.most / y_bar.norm(dim=-1, keepdim=True)).clamp(max=1.0), None


class ClipsAll(Clips):
    @staticmethod
    def backward(ctx, y_bar):
        return y_bar * (ctx.most / y_bar.norm()).clamp(max=1.0), None


class Adds(Clips):
    @staticmethod
    def backward(ctx, y_bar):
        return y_bar + 2 * ctx.most, None


class Softened(Function):
    """A number that stands for the largest element; its gradient is centred on the element and not on the mean."""

    @staticmethod
    def forward(ctx, x, beta):
        p = torch.softmax(beta * x, -1)
        hard = x.argmax(-1).to(x.dtype)
        ctx.save_for_backward(p, hard)
        ctx.beta = beta
        return hard.clone()

    @staticmethod
    def backward(ctx, y_bar):
        p, hard = ctx.saved_tensors
        place = torch.arange(p.shape[-1], dtype=p.dtype)
        return y_bar.unsqueeze(-1) * ctx.beta * p * (place - hard.unsqueeze(-1)), None


def identity(x, number):
    return x


def clipped(inputs, output, y_bar):
    return {"x": y_bar * (inputs.most / y_bar.norm(dim=-1, keepdim=True)).clamp(max=1.0)}


def added(inputs, output, y_bar):
    return {"x": y_bar + inputs.most}


def largest(x, beta):
    return x.argmax(-1).to(x.dtype)


def expected(x, beta):
    return (torch.softmax(beta * x, -1) * torch.arange(x.shape[-1], dtype=x.dtype)).sum(-1)


def spec(function, primal=identity, **how):
    return FunctionSpec(function.apply, primal, cases=lambda make: [(make(4, 6), 1.5)], **how)


@pytest.mark.parametrize(
    ("made", "likely"),
    [
        (
            lambda: spec(ClipsAll, lambda x, most: x, gradient=clipped),
            "right with `y_bar.norm(dim=-1, keepdim=True)` in place of `y_bar.norm()`",
        ),
        (lambda: spec(Adds, lambda x, most: x, gradient=added), "right with `ctx.most` in place of `2 * ctx.most`"),
        (
            lambda: spec(Softened, largest, surrogate=expected),
            "right with `E - p * E.sum(-1, keepdim=True)` in place of `E = y_bar.unsqueeze(-1) * ctx.beta * p * ",
        ),
    ],
    ids=["clips", "adds", "long"],
)
def test_what_mends_a_gradient_that_is_not_linear_on_purpose_is_named(made, likely):
    (found,) = verify([made()], select_laws(["vjp"])).failures

    assert found.finding.likely.startswith(likely)


def test_a_wrong_gradient_of_no_cotangent_follows_from_the_wrong_gradient():
    report = verify([spec(Adds)], select_laws(["vjp", "undefined_cotangent"]))

    assert {verdict.law: verdict.finding.follows for verdict in report.failures} == {
        "vjp": "",
        "undefined_cotangent": "vjp",
    }


class Nearest(Function):
    """The row of a table that is nearest; its gradient goes to both."""

    @staticmethod
    def forward(ctx, x, table):
        place = torch.cdist(x, table).argmin(1)
        ctx.save_for_backward(place, table)
        return table[place]

    @staticmethod
    def backward(ctx, y_bar):
        place, table = ctx.saved_tensors
        return y_bar, torch.zeros_like(table).index_add_(0, place, y_bar)


def nearest(x, table):
    return table[torch.cdist(x, table).argmin(1)]  # `cdist` has no forward mode


@pytest.mark.parametrize(
    ("supports", "status"),
    [(Supports(), Status.NOT_PROMISED), (Supports(forward_mode=True), Status.ERROR)],
    ids=["silent", "jvp"],
)
def test_a_spec_need_not_take_a_transform_that_nobody_promises(supports, status):
    made = FunctionSpec(
        Nearest.apply,
        nearest,
        surrogate=lambda x, table: nearest(x.detach(), table) + x - x.detach(),
        cases=lambda make: [(make(8, 2), make(3, 2))],
        supports=supports,
    )
    (verdict,) = verify([made], select_laws(["jvp"])).of(law="jvp")

    assert verdict.status is status
