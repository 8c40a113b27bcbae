"""The power of a comparison: whether it would have noticed a wrong result.

A zero gradient agrees with a reference that is zero. So each comparison that holds notes whether it would have held for
a result of zeros too, and for one with two elements swapped; zero is the hardest of the scaled ones, for twice a result
or its negative agrees only where zero does. Nothing is run a second time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torch import Tensor

#: By what was compared, whether some comparison of this check would have noticed zeros, and a swap.
Seen = dict[str, bool]
_SEEN: ContextVar[Seen | None] = ContextVar("gradspec.witness", default=None)


@contextmanager
def witnessing() -> Iterator[Seen]:
    """Collect what the comparisons of one check could have shown."""
    seen: Seen = {}
    token = _SEEN.set(seen)
    try:
        yield seen
    finally:
        _SEEN.reset(token)


def note(what: str, expected: Tensor | None, declared_zero: tuple[str, ...] = ()) -> None:
    """Note a comparison that holds.

    Args:
        what: what was compared, as the message of a failure says it: "gradient of `x` (random 0 cotangent)".
        expected: what the reference gave; None counts as zero.
        declared_zero: the arguments whose gradient is declared to be zero, which are not checked here.
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
    return (_SEEN.get() or {}).get(name) is False
