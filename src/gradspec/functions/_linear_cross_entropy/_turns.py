"""The vmap rule of a Function that reads one weight: one call after the other, each on its own slices."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function


def in_turn(
    cls: type[Function], info: Any, in_dims: tuple[Any, ...], arguments: tuple[Any, ...]
) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    """Return what a Function of several outputs gives for each slice of its arguments, stacked.

    Each call has a whole weight to read: there is nothing to gain from one call for all.
    """

    def turn(*slices: Any) -> Any:
        return cls.apply(*slices)  # type: ignore[no-untyped-call]

    each = list(zip(arguments, in_dims, strict=True))
    if info.batch_size == 0:  # what a Jacobian of no output maps over: the shapes are those of a call on zeros
        empty = (v if dim is None else v.new_zeros(v.movedim(dim, 0).shape[1:]) for v, dim in each)
        found = tuple(value.new_zeros((0, *value.shape)) for value in turn(*empty))
        return found, (0,) * len(found)
    turns = [turn(*(v if dim is None else v.select(dim, k) for v, dim in each)) for k in range(info.batch_size)]
    stacked = tuple(torch.stack(values) for values in zip(*turns, strict=True))
    return stacked, (0,) * len(stacked)
