"""How far off the comparisons of a check are, and how far they may be where rounding explains it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass
class Comparisons:
    """How the comparisons of one check are made, and what they say."""

    #: By what is compared: how far off it may be by rounding.
    allowed: Mapping[str, float]
    #: Whether differences are noted and not judged.
    only_notes: bool
    #: By what was compared: how far off it was.
    off: dict[str, float] = field(default_factory=dict)
    #: By the argument of a finding, what was compared and is too far off: whether it could be rounding.
    narrow: dict[str, bool] = field(default_factory=dict)

    def is_narrow(self, argument: str) -> bool:
        """Whether what a finding is about could be rounding."""
        return self.narrow.get(argument, False)


_NOW: ContextVar[Comparisons | None] = ContextVar("gradspec.comparisons", default=None)


@contextmanager
def comparing(*, allowed: Mapping[str, float] | None = None, only_notes: bool = False) -> Iterator[Comparisons]:
    """Say how the comparisons of one check are made, and collect what they say."""
    now = Comparisons(allowed or {}, only_notes)
    token = _NOW.set(now)
    try:
        yield now
    finally:
        _NOW.reset(token)


def is_only_noted() -> bool:
    """Whether a difference is noted and not judged."""
    now = _NOW.get()
    return now is not None and now.only_notes


def note_off(what: str, off: float) -> None:
    """Note how far off a comparison is."""
    if (now := _NOW.get()) is not None:
        now.off[what] = max(off, now.off.get(what, 0.0))


def is_allowed(what: str, argument: str, off: float, *, far: float) -> bool:
    """Return whether a difference that is too large is known to be rounding, and note whether it could be.

    Args:
        what: what is compared, as the message of a failure says it.
        argument: the same as the finding names it.
        off: how large the difference is.
        far: the size from which it is not rounding.
    """
    if (now := _NOW.get()) is None:
        return False
    now.narrow[argument] = off <= far
    return off <= now.allowed.get(what, 0.0)
