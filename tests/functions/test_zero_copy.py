"""In ordinary training the forward pass of a gradient scaler copies nothing."""

from __future__ import annotations

import pytest
import torch

from gradspec.functions import GradFactor, GradMultiply

SIZE = 1 << 16

scalers = pytest.mark.parametrize("function", [GradFactor, GradMultiply], ids=lambda function: function.__name__)
factors = pytest.mark.parametrize(
    "factor", [0.5, torch.tensor(0.5), torch.full((SIZE,), 0.5)], ids=["number", "0-d tensor", "tensor of x's shape"]
)


def allocated(function: type[torch.autograd.Function], *arguments: object) -> int:
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        function.apply(*arguments)
    return sum(max(0, event.self_cpu_memory_usage) for event in profile.events())


@scalers
@factors
def test_output_shares_the_storage_of_its_input(function: type[torch.autograd.Function], factor: object) -> None:
    x = torch.ones(SIZE, requires_grad=True)
    y = function.apply(x, factor)
    assert y.grad_fn is not None
    assert y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


@scalers
@factors
def test_forward_allocates_nothing(function: type[torch.autograd.Function], factor: object) -> None:
    assert allocated(function, torch.ones(SIZE, requires_grad=True), factor) == 0


def test_the_profiler_sees_a_copy() -> None:
    class Copies(torch.autograd.Function):
        @staticmethod
        def forward(_ctx: object, x: torch.Tensor, _f: object) -> torch.Tensor:
            return x.clone()

    assert allocated(Copies, torch.ones(SIZE, requires_grad=True), 0.5) == 4 * SIZE
