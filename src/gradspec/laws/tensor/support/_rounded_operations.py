"""How far rounding in a lower precision takes a result: every operation errs at random by the unit of that precision.

This is the stochastic arithmetic of Vignes (A stochastic arithmetic for reliable scientific computation, 1993): the
program itself runs in float64, and what its results scatter is what a lower precision leaves undecided.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from gradspec.laws.tensor.support._call import differentiable


class RoundedOperations(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types here
    """While it is entered, what an operation of torch computes is off by up to a unit, relatively, at random."""

    def __init__(self, unit: float, seed: int) -> None:
        """Take the unit of rounding and the seed of the errors."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.unit, self.generator = unit, torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation and round what it returns; a view of something computes nothing."""
        found = func(*args, **(kwargs or {}))
        if any(one.alias_info is not None for one in func._schema.returns):
            return found
        return tree_map(self._rounded, found)

    def _rounded(self, value: Any) -> Any:
        if not differentiable(value) or value.layout != torch.strided or not value.numel():
            return value
        error = torch.rand(value.shape, generator=self.generator, dtype=torch.float64).mul_(2).sub_(1)
        return _times(value, 1 + self.unit * error.to(value.device))


def _times(value: Tensor, factor: Tensor) -> Tensor:
    """Return a product with the layout of its first factor."""
    found = torch.empty_like(value)
    return found.copy_(value * factor)
