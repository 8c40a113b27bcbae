"""A function that takes `backward()` and refuses `torch.autograd.grad`, as a reentrant checkpoint does."""

from __future__ import annotations

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from gradspec import FunctionSpec, verify


class Off(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, times):
        ctx.times = times
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return ctx.times * g, None


LAWS = ("primal", "vjp", "inputs_untouched", "declared_writes", "declared_draws", "retained_graph", "needs_input_grad")


@pytest.mark.parametrize("times", [1.0, 2.0])
def test_its_gradient_is_what_backward_adds(times):
    spec = FunctionSpec(
        lambda x: checkpoint(lambda t: Off.apply(t.sin(), times), x, use_reentrant=True),
        lambda x: x.sin(),
        name="reentrant",
        cases=lambda make: [make(3)],
    )
    failing = [verdict for verdict in verify([spec], laws=LAWS).verdicts if verdict.finding.is_failure]

    if times == 1:
        assert failing == []
    else:
        assert failing[0].law == "vjp"
        assert failing[0].finding.likely == "every element is off by the factor 2"
