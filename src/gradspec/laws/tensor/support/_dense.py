"""A sparse gradient is judged by its dense values."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor

Gradient = TypeVar("Gradient", Tensor, Tensor | None)


def dense(gradient: Gradient) -> Gradient:
    """Return a gradient with a number for each element, as an optimiser adds it: duplicates of an index are summed."""
    return gradient if gradient is None or gradient.layout == torch.strided else gradient.to_dense()
