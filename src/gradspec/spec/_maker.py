"""The tensors of a case: drawn from a seed, with numbers short enough to read in a failure."""

from __future__ import annotations

import torch
from torch import Tensor


class Maker:
    """Draws tensors of hundredths between -9 and 9, the same ones for the same seed on every device."""

    def __init__(self, seed: int, device: str) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self._device = device

    def __call__(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Return a new tensor of `shape`: float64 unless told, integers from -9 to 9, booleans."""
        dtype = dtype or torch.float64
        if dtype == torch.bool:
            return torch.randint(0, 2, shape, generator=self._generator).bool().to(self._device)
        if not (dtype.is_floating_point or dtype.is_complex):
            return torch.randint(-9, 10, shape, generator=self._generator).to(self._device, dtype)
        hundredths = self._hundredths(shape)
        if dtype.is_complex:
            hundredths = torch.complex(hundredths, self._hundredths(shape))
        return hundredths.to(self._device, dtype)

    def _hundredths(self, shape: tuple[int, ...]) -> Tensor:
        return torch.randint(-900, 901, shape, generator=self._generator).double() / 100
