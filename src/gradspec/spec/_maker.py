"""The tensors of a case: drawn from a seed, with numbers short enough to read in a failure."""

from __future__ import annotations

import math

import torch
from torch import Tensor


class Maker:
    """Draws tensors of hundredths, between -9 and 9 unless told, the same ones for the same seed on every device."""

    def __init__(self, seed: int, device: str) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self._device = device

    def __call__(self, *shape: int, dtype: torch.dtype | None = None, low: float = -9.0, high: float = 9.0) -> Tensor:
        """Return a new tensor of `shape`: float64 unless told, from `low` to `high`, both included; or of booleans.

        Args:
            shape: its sizes.
            dtype: float64 unless told; of a complex one, both parts are drawn.
            low: the least number; hundredths count, and whole numbers for integers.
            high: the greatest.

        Raises:
            ValueError: `low` is above `high`.
        """
        if not low <= high:
            raise ValueError(f"low is {low} and high is {high}: expected low <= high")
        dtype = dtype or torch.float64
        if dtype == torch.bool:
            return torch.randint(0, 2, shape, generator=self._generator).bool().to(self._device)
        if not (dtype.is_floating_point or dtype.is_complex):
            whole = torch.randint(math.ceil(low), math.floor(high) + 1, shape, generator=self._generator)
            return whole.to(self._device, dtype)
        hundredths = self._hundredths(shape, low, high)
        if dtype.is_complex:
            hundredths = torch.complex(hundredths, self._hundredths(shape, low, high))
        return hundredths.to(self._device, dtype)

    def _hundredths(self, shape: tuple[int, ...], low: float, high: float) -> Tensor:
        first, last = round(100 * low), round(100 * high)
        return torch.randint(first, last + 1, shape, generator=self._generator).double() / 100
