"""Tensors said as plain data, so that a failure can be read and built again: shape, dtype, strides, and a seed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

#: How a tensor lies in memory. torch has no negative strides.
LAYOUTS = ("contiguous", "transposed", "sliced", "offset", "expanded")
DTYPES = ("float64", "float32", "float16", "bfloat16")
COMPLEX = ("complex128", "complex64")


@dataclass(frozen=True)
class Drawn:
    """A tensor of numbers between two bounds."""

    shape: tuple[int, ...]
    dtype: str = "float64"
    layout: str = "contiguous"
    seed: int = 0
    low: float = -1.0
    high: float = 1.0

    def build(self, *, widened: bool = False) -> Tensor:
        """Return the tensor: the same numbers in each layout but the expanded one, which repeats its first row.

        Args:
            widened: the numbers of this dtype, in double precision.
        """
        dtype, shape = getattr(torch, self.dtype), self.shape
        generator = torch.Generator().manual_seed(self.seed)

        def uniform() -> Tensor:
            numbers = torch.rand(shape, generator=generator, dtype=torch.float64)
            return numbers * (self.high - self.low) + self.low

        if not (dtype.is_floating_point or dtype.is_complex):
            return laid(uniform().floor().to(dtype), self.layout)
        found = (torch.complex(uniform(), uniform()) if dtype.is_complex else uniform()).to(dtype)
        return laid(wide(found) if widened else found, self.layout)


def wide(tensor: Tensor) -> Tensor:
    """Return numbers in double precision."""
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def laid(tensor: Tensor, layout: str) -> Tensor:
    """Return a tensor of the same numbers with other strides."""
    shape = tensor.shape
    if layout == "contiguous" or not shape:
        return tensor.contiguous()
    if layout == "transposed":
        backwards = tuple(reversed(range(tensor.ndim)))
        return tensor.permute(backwards).contiguous().permute(backwards)
    if layout == "sliced":
        wide = tensor.new_zeros((*shape[:-1], 2 * shape[-1] + 1))
        wide[..., 1::2] = tensor
        return wide[..., 1::2]
    if layout == "offset":
        flat = tensor.new_zeros(tensor.numel() + 1)
        flat[1:] = tensor.reshape(-1)
        return flat[1:].view(shape)
    return tensor[:1].contiguous().expand(shape)
