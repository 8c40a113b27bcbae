"""An output without a graph beside one that has one: asked about, unless the code says it by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from gradspec import audit
from gradspec.law import Status
from gradspec.laws import LAWS

SURROGATE = [law for law in LAWS if law.name == "surrogate"]
REMARK = "Output 1 has no graph: a loss of it trains nothing."


def detached(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.sum(), (x**2).detach()


def in_no_grad(x: Tensor) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        square = (x**2).mean()
    return x.sum(), square


def forces(x: Tensor, *, create_graph: bool = False) -> tuple[Tensor, Tensor]:
    with torch.enable_grad():
        x = x if x.requires_grad else x.clone().requires_grad_()
        energy = (x**3).sum()
        (gradient,) = torch.autograd.grad(energy, x, create_graph=create_graph, retain_graph=True)
    return energy, -gradient


def with_graph(x: Tensor) -> tuple[Tensor, Tensor]:
    return forces(x, create_graph=True)


class Marked(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        kept = x.logsumexp(0)
        ctx.mark_non_differentiable(kept)
        return 2 * x, kept

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> Tensor:
        return 2 * grad


def marked(x: Tensor) -> Any:
    return Marked.apply(x)


def index_and_mask(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return x.max(0).values, x.argmax(0), (x > 0).double()


@pytest.mark.parametrize(
    ("function", "is_asked", "is_remarked"),
    [
        (forces, True, False),
        (with_graph, False, False),
        (detached, False, True),
        (in_no_grad, False, True),
        (marked, False, False),
        (Marked, False, False),
        (index_and_mask, False, False),
    ],
)
def test_an_output_without_a_graph_is_asked_about(
    function: Callable[..., Any], is_asked: bool, is_remarked: bool
) -> None:
    found = audit(function, ["(randn(3),)"], laws=SURROGATE)
    (verdict,) = found.report.verdicts
    asked = "Is it meant that output 1 has no graph? It moves with `x`, and a loss of it trains nothing."
    assert verdict.finding.message.startswith(asked) == is_asked
    assert verdict.status is (Status.QUESTION if is_asked else Status.HOLDS)
    assert (REMARK in found.remarks) == is_remarked
