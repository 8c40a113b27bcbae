"""Until when the call in hand must be done: a context variable, so that a model may look and need not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_until: ContextVar[float | None] = ContextVar("gradspec.text.lm.deadline", default=None)


@contextmanager
def deadline(until: float | None) -> Iterator[None]:
    """Let calls in this block end by `until`, a time of `time.monotonic`; None leaves them their own timeout."""
    token = _until.set(until)
    try:
        yield
    finally:
        _until.reset(token)


def seconds_left(timeout: float | None = None) -> float | None:
    """Return the seconds that the call in hand may take: what is left to the deadline, at most `timeout`."""
    until = _until.get()
    if until is None:
        return timeout
    left = max(0.0, until - time.monotonic())
    return left if timeout is None else min(left, timeout)
