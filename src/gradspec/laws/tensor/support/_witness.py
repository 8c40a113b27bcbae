"""The power of a comparison: whether it would have noticed a wrong result.

A zero gradient agrees with a reference that is zero. So each comparison that holds notes whether it would have held for
a result of zeros too, and for one with two elements swapped; zero is the hardest of the scaled ones, for twice a result
or its negative agrees only where zero does. Nothing is run a second time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class Least:
    """The smallest mistakes that a comparison would have shown."""

    #: How far from 1 a factor of all elements may be, unseen.
    gain: float
    #: How many elements could each be lost unseen, and of how many that are not 0.
    unseen: int
    elements: int


class Seen(dict[str, bool]):
    """By what was compared, whether some comparison of this check would have noticed zeros, and a swap."""

    def __init__(self) -> None:
        """Begin with nothing."""
        super().__init__()
        #: What the first comparison of each would have shown at least.
        self.least: dict[str, Least] = {}

    def facts(self) -> dict[str, Any]:
        """Return what the comparisons could have shown, and what they could not."""
        blind = sorted(name for name, noticed in self.items() if not noticed)
        facts: dict[str, Any] = {"shows": sorted(name for name, noticed in self.items() if noticed)} if self else {}
        facts |= {"blind": blind} if blind else {}
        least = {name: asdict(least) for name, least in self.least.items()}
        return facts | ({"would show": least} if least else {})


_SEEN: ContextVar[Seen | None] = ContextVar("gradspec.witness", default=None)


@contextmanager
def witnessing() -> Iterator[Seen]:
    """Collect what the comparisons of one check could have shown."""
    seen = Seen()
    token = _SEEN.set(seen)
    try:
        yield seen
    finally:
        _SEEN.reset(token)


def note(
    what: str,
    expected: Tensor | None,
    declared_zero: tuple[str, ...] = (),
    bound: Callable[[], Tensor] | None = None,
) -> None:
    """Note a comparison that holds.

    Args:
        what: what was compared, as the message of a failure says it: "gradient of `x` (random cotangent)".
        expected: what the reference gave; None counts as zero.
        declared_zero: the arguments whose gradient is declared to be zero, which are not checked here.
        bound: returns how far each element may be off; asked of one comparison of each kind.
    """
    seen = _SEEN.get()
    if seen is None or (expected is not None and expected.numel() == 0):
        return
    name = subject(what)
    if not name or any(name == f"gradient of `{argument}`" for argument in declared_zero):
        return
    if not seen.get(name):
        seen[name] = expected is not None and bool(expected.any())
    swapped = f"{name}, swapped"
    if expected is not None and expected.numel() > 1 and not seen.get(swapped) and seen[name]:
        seen[swapped] = bool((expected != expected.flatten()[0]).any())
    if bound is None or expected is None or name in seen.least:
        return
    if (expected.is_floating_point() or expected.is_complex()) and (least := _least(expected.abs(), bound())):
        seen.least[name] = least


def note_norm(what: str, off: float) -> None:
    """Note how far off a whole result in a half type may be unseen, as a part of it, beside what its elements show."""
    seen = _SEEN.get()
    if seen is not None and (least := seen.least.get(name := subject(what))) is not None:
        seen.least[name] = least = replace(least, gain=min(least.gain, off))
        seen[name] = seen[name] and least.gain < 1


def _least(size: Tensor, bound: Tensor) -> Least | None:
    """Return the smallest mistakes that a bound shows in numbers of a size; None where no element can show one."""
    is_there = (size > 0) & size.isfinite() & bound.isfinite()
    if not bool(is_there.any()):
        return None
    size, bound = size[is_there], bound[is_there]
    return Least(float((bound / size).min()), int((size <= bound).sum()), size.numel())


def subject(what: str) -> str:
    """Return what a comparison is about, without what tells one comparison of a check from the next.

    Nothing for a derivative of a gradient, in a law that is about gradients: of a linear function it is zero.
    """
    if "order" in what:
        return ""
    if found := re.search(r"\bgradient\b.*of `([^`]+)`", what):
        return f"gradient of `{found[1]}`"
    kinds = ("derivative", "tangent", "value", "output")
    return next((kind for kind in kinds if kind in what), "result").replace("output", "value")


def is_blind(name: str) -> bool:
    """Whether every comparison of a subject in this check so far would have held for zeros."""
    seen = _SEEN.get()
    return seen is not None and seen.get(name) is False
