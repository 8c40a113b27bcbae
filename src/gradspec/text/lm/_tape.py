"""Which cassette records the calls of this process, and whether a call is made within one that it records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradspec.text.lm._cassette import Cassette

#: Of the process, and not of a context: a call that a thread of the user's makes belongs to the run too.
_OPEN: list[Cassette] = []
_INSIDE: ContextVar[bool] = ContextVar("gradspec.text.lm.inside", default=False)


def tape() -> Cassette | None:
    """Return the cassette that records, or answers, the call that is about to be made here."""
    return _OPEN[0] if _OPEN and not _INSIDE.get() else None


@contextmanager
def inside() -> Iterator[None]:
    """Record nothing in a block: it is a part of a call that is recorded."""
    token = _INSIDE.set(True)
    try:
        yield
    finally:
        _INSIDE.reset(token)


def put_in(cassette: Cassette) -> None:
    """Have a cassette record the calls of this process.

    Raises:
        RuntimeError: another one does.
    """
    if _OPEN:
        raise RuntimeError(f"{_OPEN[0]!r} records this process already; a run has one cassette")
    _OPEN.append(cassette)


def take_out(cassette: Cassette) -> None:
    """End that."""
    if cassette in _OPEN:
        _OPEN.remove(cassette)
