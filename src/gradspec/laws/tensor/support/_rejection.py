"""Samples that torch accepts or rejects: at fixed noise they are no smooth function of their parameters.

Their gradient is that of the cumulative distribution at the sample (Figurnov et al., Implicit Reparameterization
Gradients, 2018, equation 5). So where a call is moved by small steps, a sample moves along its gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


def _gamma(sample: Tensor, concentration: Tensor, step: Tensor) -> Tensor:
    return torch._standard_gamma_grad(concentration, sample) * step


def _dirichlet(sample: Tensor, concentration: Tensor, step: Tensor) -> Tensor:
    total = concentration.sum(-1, keepdim=True).expand_as(concentration)
    along = torch._dirichlet_grad(sample, concentration, total) * step
    return along - sample * along.sum(-1, keepdim=True)


#: How a sample moves with its concentration, by torch's sampler.
_SLOPES: dict[Any, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    torch._standard_gamma: _gamma,
    torch._sample_dirichlet: _dirichlet,
}


class _Samples(TorchFunctionMode):
    """Notes each sample and its concentration, or moves what was noted, in the same order."""

    def __init__(self, noted: list[tuple[Any, Tensor, Tensor]] | None = None) -> None:
        super().__init__()
        self.seen: list[tuple[Any, Tensor, Tensor]] = []
        self._noted = iter(noted) if noted is not None else None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found: Any = func(*args, **(kwargs or {}))
        if func not in _SLOPES:
            return found
        given = args[0].detach()
        if self._noted is None:
            self.seen.append((func, found.detach().clone(), given.clone()))
            return found
        which, sample, concentration = next(self._noted, (None, found, given))
        if which is not func or sample.shape != found.shape:
            return found
        moved: Tensor = sample + _SLOPES[func](sample, concentration, given - concentration)
        return found + (moved - found).detach()


def along_samples(
    function: Callable[..., tuple[Tensor, ...]], x: tuple[Tensor, ...]
) -> Callable[..., tuple[Tensor, ...]]:
    """Return the map in which each such sample moves along its gradient at `x`; the same one where none is drawn."""
    with (noting := _Samples()):
        function(*x)
    if not noting.seen:
        return function

    def moved(*args: Tensor) -> tuple[Tensor, ...]:
        with _Samples(noting.seen):
            return function(*args)

    return moved
