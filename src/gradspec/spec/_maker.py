"""The tensors of a case: drawn from a seed, with numbers short enough to read in a failure."""

from __future__ import annotations

import math

import torch
from torch import Tensor


class Maker:
    """Draws tensors of short numbers, the same ones for the same seed on every device.

    They are normal, about -3 to 3, as those of `torch.randn`, but never 0, 1 or -1, at which many functions have a
    kink, and no two of a tensor are equal.
    """

    def __init__(self, seed: int, device: str) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self._device = device

    @property
    def device(self) -> str:
        """The device on which it makes tensors."""
        return self._device

    def __call__(
        self, *shape: int, dtype: torch.dtype | None = None, low: float | None = None, high: float | None = None
    ) -> Tensor:
        """Return a new tensor of `shape`, of normal numbers in float64, or as told.

        Args:
            shape: its sizes.
            dtype: float64 unless told; of a complex one, both parts are drawn. Integers are from -9 to 9 unless told.
            low: the least number: all from here to `high` are then equally likely, by hundredths, and by whole numbers
                for integers. -9 where only `high` is told.
            high: the greatest, 9 where only `low` is told.

        Raises:
            ValueError: `low` is above `high`.
        """
        is_normal, low, high = low is None and high is None, -9.0 if low is None else low, 9.0 if high is None else high
        if not low <= high:
            raise ValueError(f"low is {low} and high is {high}: expected low <= high")
        dtype = dtype or torch.float64
        if dtype == torch.bool:
            return torch.randint(0, 2, shape, generator=self._generator).bool().to(self._device)
        if not (dtype.is_floating_point or dtype.is_complex):
            whole = torch.randint(math.ceil(low), math.floor(high) + 1, shape, generator=self._generator)
            return whole.to(self._device, dtype)

        def drawn() -> Tensor:
            return self._normal(shape) if is_normal else self._hundredths(shape, low, high)

        value = torch.complex(drawn(), drawn()) if dtype.is_complex else drawn()
        return value.to(self._device, dtype)

    def _hundredths(self, shape: tuple[int, ...], low: float, high: float) -> Tensor:
        first, last = round(100 * low), round(100 * high)
        return torch.randint(first, last + 1, shape, generator=self._generator).double() / 100

    def _normal(self, shape: tuple[int, ...]) -> Tensor:
        """Return normal numbers with as many decimals as keep them apart: two, of a small tensor."""
        count = math.prod(shape)
        parts = 100 * 10 ** max(0, len(str(count)) - 1)
        taken: set[int] = {0, parts, -parts}
        found: list[int] = []
        while len(found) < count:
            for number in torch.randn(count - len(found), generator=self._generator, dtype=torch.float64).tolist():
                if (whole := round(parts * number)) not in taken:
                    taken.add(whole)
                    found.append(whole)
        return torch.tensor(found, dtype=torch.float64).reshape(shape).div(parts)
