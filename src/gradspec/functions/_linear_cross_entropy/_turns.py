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
    turns = [
        cls.apply(  # type: ignore[no-untyped-call]
            *(value if dim is None else value.select(dim, k) for value, dim in zip(arguments, in_dims, strict=True))
        )
        for k in range(info.batch_size)
    ]
    stacked = tuple(torch.stack(values) for values in zip(*turns, strict=True))
    return stacked, (0,) * len(stacked)
