"""Explain a mistake at repeated indices, such as a value that is assigned instead of added."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

#: What is said where the cotangent of one element an index is enough, and where it is not.
ASSIGNED = (
    "backward assigns to what an index points at, and must add, as index_add_ and index_put_ with accumulate=True do: "
    "x[i] += ... keeps one of them"
)
SHARED = "wrong in what the elements of one index share, as their sum, their count or their mean"


def last_of_each(index: Tensor) -> Tensor:
    """Return where an index stands for the last time, as a mask of its shape."""
    flat = index.flatten()
    last = {int(value): place for place, value in enumerate(flat.tolist())}
    mask = torch.zeros(flat.shape, dtype=torch.bool, device=index.device)
    mask[list(last.values())] = True
    return mask.view(index.shape)


def masked_rows(value: Tensor, masks: Iterable[Tensor]) -> Tensor:
    """Return a tensor that is zero where a mask of its first dimensions is; as it is, if none has their shape."""
    for mask in masks:
        if value.shape[: mask.ndim] == mask.shape and value.is_floating_point():
            return value * mask.view(*mask.shape, *(1 for _ in range(value.ndim - mask.ndim)))
    return value
