r"""A journal of a memory bank: its rows before each move, kept while a graph that read them is pending.

A bank goes through states, and a move leads from one to the next. A pending graph holds the state that its forward
pass read; a state holds the rows that the move out of it wrote, with their old values, and the state after it. So a
graph reaches every old row that it needs, and nothing else holds a state: old rows die with the last graph that may
ask for them, and a bank that no graph waits for has no journal at all. The bank itself is never copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias
from weakref import WeakValueDictionary

import torch
from torch import Tensor

Place: TypeAlias = tuple[str, int, int, tuple[int, ...], tuple[int, ...]]


@dataclass(eq=False, slots=True, weakref_slot=True)
class State:
    """A memory bank between two moves."""

    #: torch's version counter of the bank in this state: another number means that something else has written.
    version: int
    #: The rows that the move out of this state wrote, shape (R,), repetitions included; None until it comes.
    rows: Tensor | None = None
    #: What they held in this state, shape (R, D).
    old: Tensor | None = None
    #: The state that the move led to.
    after: State | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Seen:
    """A memory bank as one forward pass saw it."""

    memory: Tensor
    place: Place
    state: State

    def moved_since(self) -> tuple[Tensor, Tensor, Tensor] | None:
        """Return the rows that have moved since and what this forward pass saw in them; None if none has.

        Returns:
            `rows` of shape (R,), which may repeat; `old` of shape (R, D), the same for the same row; and a mask of
            shape (R,) that is true once for each row.

        Raises:
            RuntimeError: something other than a move has written to the bank.
        """
        # States S_0 (seen), S_1, ..., S_n (now); move k, from S_k to S_k+1, wrote the rows R_k, which held O_k in S_k.
        # What row j held in S_0: O_k[j] for the first k with j in R_k, because no move before k wrote it; what it holds
        # now if there is no such k. With R = R_0 R_1 ... and O = O_0 O_1 ... that is O at the first place of j in R.
        # A row that one move names twice has the same old value at both places: a move reads before it writes.
        state, rows, old = self.state, [], []
        while state.after is not None and state.rows is not None and state.old is not None:
            rows.append(state.rows)
            old.append(state.old)
            state = state.after
        if state.version != self.memory._version or self.place != place_of(self.memory):
            raise RuntimeError(
                "LinearAverageOp: something other than its own moves has written to the memory bank since the forward "
                "pass whose gradient is asked for. Write to the bank before the forward pass or after its backward "
                "pass, or move it with LinearAverage.update"
            )
        if not rows:
            return None
        moved = torch.cat(rows)
        first = first_of_each(moved)  # of a row that moved more than once, what it held before its first move
        return moved, torch.cat(old)[first], first == torch.arange(len(moved), device=moved.device)


# The last state of each bank that some graph waits for. A place is not taken by another bank meanwhile: the graph
# that holds the state holds the bank.
_LAST: WeakValueDictionary[Place, State] = WeakValueDictionary()


def place_of(memory: Tensor) -> Place:
    """Return what identifies a bank, whatever tensor object represents it."""
    start, offset = memory.untyped_storage().data_ptr(), int(memory.storage_offset())
    return str(memory.device), start, offset, tuple(memory.shape), memory.stride()


def see(memory: Tensor) -> Seen:
    """Return the bank as it is now, to be held by a graph that will ask for it."""
    place = place_of(memory)
    state = _LAST.get(place)
    if state is None or state.version != memory._version:
        state = State(version=memory._version)
        _LAST[place] = state
    return Seen(memory, place, state)


def write(memory: Tensor, rows: Tensor, old: Tensor, new: Tensor) -> None:
    """Write new rows to a bank, and keep the old ones if a graph may ask for them.

    Args:
        memory: the bank, shape (N, D).
        rows: which rows, shape (R,); where one is repeated, `new` repeats its value.
        old: what they hold, shape (R, D).
        new: what they shall hold, shape (R, D).
    """
    place = place_of(memory)
    state = _LAST.get(place)
    if state is not None and state.version != memory._version:
        state = None  # something else has written in between: the graphs before that raise when they are run
    memory.index_copy_(0, rows, new)
    if state is not None:
        state.rows, state.old, state.after = rows.clone(), old, State(version=memory._version)
        _LAST[place] = state.after


def last_of_each(y: Tensor) -> Tensor:
    """Return, for each position, the last position that holds the same number; shape (B,) to (B,)."""
    # Sorted, equal numbers are neighbours, and a stable sort leaves them in the order of their positions. From the left
    # `searchsorted` finds the first of them, and from the right the one after the last.
    ordered, places = torch.sort(y.contiguous(), stable=True)
    return places[torch.searchsorted(ordered, y.contiguous(), right=True) - 1]


def first_of_each(y: Tensor) -> Tensor:
    """Return, for each position, the first position that holds the same number; shape (B,) to (B,)."""
    ordered, places = torch.sort(y.contiguous(), stable=True)
    return places[torch.searchsorted(ordered, y.contiguous())]
