"""The position of a call in its program: the same whichever of several calls runs first."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

#: A number for each level: the second call of the first of several that overlap is (1, 0, 1).
Position = tuple[int, ...]

_NOWHERE: AbstractContextManager[Any] = nullcontext()


class Place:
    """Where calls are made one after the other; each takes the next position.

    Examples:
        >>> place = Place((3,))
        >>> place.next(), place.next()
        ((3, 0), (3, 1))
    """

    __slots__ = ("_lock", "_taken", "position")

    def __init__(self, position: Position = ()) -> None:
        self.position = position
        self._taken = 0
        self._lock = threading.Lock()

    def next(self) -> Position:
        """Return the next position, of a call or of several that overlap."""
        with self._lock:
            self._taken += 1
            return (*self.position, self._taken - 1)


#: Where calls are made here; None where nobody asks for their positions.
PLACE: ContextVar[Place | None] = ContextVar("gradspec.text.place", default=None)


@contextmanager
def at(place: Place | None) -> Iterator[None]:
    """Make the calls of a block at a place; at None they take no position."""
    token = PLACE.set(place)
    try:
        yield
    finally:
        PLACE.reset(token)


def fork() -> AbstractContextManager[Any]:
    """Return a block whose calls have their place here, though they may be made later."""
    place = PLACE.get()
    return _NOWHERE if place is None else at(Place(place.next()))


def branches(count: int) -> Sequence[AbstractContextManager[Any]]:
    """Return a block for each of several things that may overlap, in their order."""
    place = PLACE.get()
    if place is None or not count:
        return (_NOWHERE,) * count
    position = place.next()
    return [at(Place((*position, branch))) for branch in range(count)]
