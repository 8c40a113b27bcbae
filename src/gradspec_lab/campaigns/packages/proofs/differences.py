"""Shared parts of the proofs: the gradient of a call by autograd, and by central differences of forward."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def both(function: Callable[..., Tensor], *arguments: Tensor, seed: int = 0) -> list[tuple[Tensor, Tensor]]:
    """Return of each argument that requires a gradient what autograd says, and what central differences say.

    The loss is the sum of the output times random numbers. The arguments are in float64.

    Args:
        function: of the arguments.
        arguments: where.
        seed: of the random numbers.
    """
    with torch.no_grad():
        weights = torch.randn(
            function(*(a.clone() for a in arguments)).shape, generator=_drawn(seed), dtype=torch.float64
        )

    def loss(values: Sequence[Tensor]) -> Tensor:
        return (weights * function(*values)).sum()

    asked = [number for number, argument in enumerate(arguments) if argument.requires_grad]
    given = torch.autograd.grad(loss(arguments), [arguments[number] for number in asked], allow_unused=True)
    found = []
    for number, got in zip(asked, given, strict=True):
        expected = torch.zeros_like(arguments[number])
        for place in range(expected.numel()):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [argument.detach().clone() for argument in arguments]
                moved[number].view(-1)[place] += step
                with torch.no_grad():
                    ends.append(loss(moved))
            expected.view(-1)[place] = (ends[0] - ends[1]) / 2e-6
        found.append((torch.zeros_like(expected) if got is None else got, expected))
    return found


def off(got: Tensor, expected: Tensor) -> float:
    """Return how far a gradient is from the true one, beside the size of the true one: 0 is right, 1 is no gradient."""
    return float((got - expected).norm() / expected.norm().clamp(min=1e-12))


def drawn(*size: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    """Return random numbers in float64 of which a gradient is asked for."""
    return (scale * torch.randn(*size, generator=_drawn(seed), dtype=torch.float64)).requires_grad_()


def _drawn(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
