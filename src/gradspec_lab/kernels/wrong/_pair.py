"""A wrong kernel with its sound twin, arguments on which the defect hides, and arguments that reveal it."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradspec_lab.kernels._kernel import Kernel

#: Rows and columns of a tile in every kernel of this room.
T = 16


@dataclass(frozen=True, kw_only=True)
class Occasion:
    """One call: the arguments, the cotangents (random if None), and what happens first."""

    args: tuple[Any, ...]
    cotangents: tuple[Tensor, ...] | None = None
    #: Called with the kernel's call and the arguments, which keep their memory.
    before: Callable[[Callable[..., Any], tuple[Any, ...]], None] | None = None
    #: How often to call: the results may differ.
    repeats: int = 1


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A wrong kernel and its sound twin, which differ by the defect and by nothing else."""

    #: The number of the defect: 1 to 12, and 13, a result cached by address.
    number: int
    #: What is wrong, in a phrase.
    defect: str
    wrong: Kernel
    twin: Kernel
    #: (dtype, generator) -> a call on which the defect is invisible.
    friendly: Callable[[torch.dtype, torch.Generator], Occasion]
    #: (dtype, generator) -> a call that shows it. No judge is told.
    revealing: Callable[[torch.dtype, torch.Generator], Occasion]
    #: What comes out wrong: "output", "dx".
    where: tuple[str, ...]
    #: The dtype in which friendly arguments hide it: exactly, if it is float64.
    hidden_in: torch.dtype = torch.float64
    #: The widest dtype in which revealing arguments show it.
    shown_in: torch.dtype = torch.float64

    @property
    def name(self) -> str:
        """The defect's number and the kernel."""
        return f"{self.number:02d} {self.wrong.name}: {self.defect}"


def wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which the sound kernels of this room accumulate."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def as_contiguous(cotangent: Tensor) -> Tensor:
    """The wrong reading of a cotangent: its memory from the start on, as if no stride were special."""
    memory = torch.empty(0, dtype=cotangent.dtype).set_(cotangent.untyped_storage())
    index = (torch.arange(cotangent.numel()) + cotangent.storage_offset()) % memory.numel()
    return memory[index].view(cotangent.shape)


class Coin:
    """Every second toss is lost: a race, as seen by one that repeats a run."""

    def __init__(self) -> None:
        self._tosses = itertools.count()

    def lost(self) -> bool:
        """Toss."""
        return next(self._tosses) % 2 == 1


def normal(dtype: torch.dtype, generator: torch.Generator, *size: int, scale: float = 1.0, mean: float = 0.0) -> Tensor:
    """Normal numbers, rounded to a dtype."""
    return (mean + scale * torch.randn(size, generator=generator, dtype=torch.float64)).to(dtype)
