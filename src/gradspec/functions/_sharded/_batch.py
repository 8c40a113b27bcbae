"""The batches of all ranks as one: each padded to the largest, so that one collective takes them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gradspec.functions._sharded._ranks import Ranks


@dataclass(frozen=True, kw_only=True)
class Batch:
    """How the rows of all ranks lie in one padded batch, in the order of the ranks."""

    ranks: Ranks
    #: The rows of each rank.
    sizes: tuple[int, ...]

    @property
    def height(self) -> int:
        """How many rows each rank has with its padding."""
        return max(self.sizes)

    @property
    def own(self) -> slice:
        """Where the rows of this rank are."""
        start = self.ranks.rank * self.height
        return slice(start, start + self.sizes[self.ranks.rank])

    def real(self, device: torch.device) -> Tensor:
        """Return which rows are not padding: shape (ranks * height,)."""
        sizes = torch.tensor(self.sizes, device=device)
        return (torch.arange(self.height, device=device) < sizes.unsqueeze(1)).flatten()


def gathered(batch: Batch, rows: Tensor) -> Tensor:
    """Return the rows of all ranks, (B, ...) to (ranks * height, ...), zeros where there is padding."""
    missing = batch.height - rows.shape[0]
    if missing:
        rows = torch.cat((rows, rows.new_zeros(missing, *rows.shape[1:])))
    return batch.ranks.all_gather(rows)
