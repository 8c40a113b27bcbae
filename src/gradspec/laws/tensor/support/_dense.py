"""Sparse outputs and gradients are judged by their dense values."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch import Tensor

#: Layouts that leave out what is zero.
_SPARSE = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)

Gradient = TypeVar("Gradient", Tensor, Tensor | None)


def is_sparse(value: Any) -> bool:
    """Whether a value is a tensor that leaves out what is zero."""
    return isinstance(value, Tensor) and value.layout in _SPARSE


def dense(gradient: Gradient) -> Gradient:
    """Return a gradient with a number for each element, as an optimiser adds it: duplicates of an index are summed."""
    return gradient if gradient is None or gradient.layout == torch.strided else gradient.to_dense()


def with_all_numbers(value: Any) -> Any:
    """Return a sparse tensor with a number for each element, still in the graph; anything else as it is."""
    return value.to_dense() if is_sparse(value) else value
