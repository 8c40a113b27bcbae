"""A memory bank that the tests of this folder and of `nn` share, and the definition of its moves in plain steps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from gradspec.functions._linear_average._cases import state_after

if TYPE_CHECKING:
    from torch import Tensor

DOCS = Path(__file__).parents[2] / "docs"
#: A temperature and a momentum whose numbers are exact.
PARAMS = torch.tensor([0.5, 0.25])


class Bank:
    """A bank of 5 rows, two batches of 3 of which each repeats a row, and what the moves make of them."""

    def __init__(self, device: str = "cpu", dtype: torch.dtype = torch.float64) -> None:
        generator = torch.Generator().manual_seed(0)

        def draw(*shape: int) -> Tensor:
            return torch.randn(shape, generator=generator, dtype=torch.float64).to(device, dtype)

        self.start = draw(5, 4)
        self.memory = self.start.clone()
        self.params = PARAMS.to(device)
        self.x, self.x2 = draw(3, 4).requires_grad_(), draw(3, 4).requires_grad_()
        self.y, self.y2 = torch.tensor([4, 0, 4], device=device), torch.tensor([1, 1, 0], device=device)
        self.v = draw(3, 5)

    def after(self, *batches: tuple[Tensor, Tensor]) -> Tensor:
        """Return the bank after moves in order."""
        memory = self.start
        for x, y in batches:
            memory = state_after(x.detach(), y, memory, self.params)["memory"]
        return memory

    @property
    def moves(self) -> int:
        """How often the rows of the first batch, and then those of the second, have moved; both are one move more."""
        first, second = (self.x, self.y), (self.x2, self.y2)
        for batches in ((), (first,), (second,), (first, second), (second, first), (first, first)):
            if torch.allclose(self.memory, self.after(*batches), rtol=1e-6, atol=1e-6):
                return len(batches)
        raise AssertionError("the bank is in a state to which no number of moves leads")

    def gradient(self, v: Tensor, memory: Tensor | None = None) -> Tensor:
        """Return the gradient of the logits of the first forward pass: `v @ memory / T`."""
        return v @ (self.start if memory is None else memory) / self.params[0].to(v.dtype)


def rows_of_the_table(page: str) -> dict[str, int]:
    """Return the table of a page about when the bank moves: the steps, and the number of moves."""
    text = (DOCS / page).read_text(encoding="utf-8")
    table = text.partition("| steps | moves |\n|---|---|\n")[2].partition("\n\n")[0]
    return {what: int(moves) for what, moves in re.findall(r"^\| (.+?) \| (\d+) \|$", table, re.MULTILINE)}
