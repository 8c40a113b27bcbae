"""A function that jumps a little between close arguments, as an iteration that stops at a tolerance does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

import torch

from gradspec.laws.tensor.support._bounded import Bounded

#: The lines that are tried, in steps of the direction, and the points on each.
LINES = ((9.0, 257), (40.0, 1025))
#: The order of differences: what is smooth leaves nothing of that order between points so close.
ORDER = 6
#: The largest coefficient of a difference of that order: what a jump by 1 leaves of it.
_OF_ONE = 10.0
#: How often the line is narrowed to where the largest difference is: a jump stays as large as it is.
NARROWED = 2
#: How many operations of torch a search may take, on all lines: what iterates without an end in sight is not searched.
_OPERATIONS = 1_500_000
_IS_KNOWN = ContextVar("is known not to jump", default=False)


@contextmanager
def known_not_to_jump() -> Iterator[None]:
    """Look for no jump within this: it was looked for, and a search costs thousands of calls."""
    token = _IS_KNOWN.set(True)
    try:
        yield
    finally:
        _IS_KNOWN.reset(token)


def jump_of(along: Callable[[float], float], *, size: float, least: float = 0.0) -> float:
    """Return by how much a function jumps near 0; 0 if it is as smooth there as its rounding.

    Args:
        along: the function of a step.
        size: of the numbers that are added up to its value: rounding is in proportion.
        least: a jump that is smaller is not looked for.
    """
    if _IS_KNOWN.get():
        return 0.0
    least = max(least, 64 * size * torch.finfo(torch.float64).eps)
    left = _OPERATIONS
    for length, points in LINES:
        cost = _cost(along, length) * points * (1 + NARROWED)
        if cost > left:
            break
        left -= cost
        if found := _jump(along, length, points, least):
            return found
    return 0.0


def _cost(along: Callable[[float], float], length: float) -> int:
    """Return what a call costs, at the ends of a line: what does not converge there takes all the rounds it may."""
    with Bounded() as counted, suppress(Exception):
        along(-length / 2)
        along(length / 2)
    return int(counted.count) // 2


def _jump(along: Callable[[float], float], length: float, points: int, least: float) -> float:
    left, right, found = -length / 2, length / 2, float("inf")
    for _ in range(1 + NARROWED):
        steps = torch.linspace(left, right, points, dtype=torch.float64)
        try:
            values = torch.tensor([along(float(step)) for step in steps], dtype=torch.float64)
        except Exception:  # so far away the function takes nothing: nothing is shown
            return 0.0
        differences = torch.diff(values, n=ORDER).abs()
        place = int(differences.argmax())
        here = float(differences[place]) / _OF_ONE
        is_one = found == float("inf") or found / 4 <= here <= 4 * found  # a bend shrinks there, and a pole grows
        if not least < here < float("inf") or not is_one:
            return 0.0
        found = min(found, here)
        left, right = float(steps[place]), float(steps[place + ORDER])
    return found
