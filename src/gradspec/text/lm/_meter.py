"""A meter of model calls and their cost, counted inside a block."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_METER: ContextVar[Meter | None] = ContextVar("gradspec.text.lm.meter", default=None)
#: The name of the client that the model is called by.
_NAME: ContextVar[str | None] = ContextVar("gradspec.text.lm.name", default=None)


class Meter:
    """Replies and their tokens, by the model's name; those from a cache count as if they had been paid now.

    So a run that was killed and resumed counts what one that was not counts.
    """

    def __init__(self, counts: Mapping[str, Any] | None = None) -> None:
        self._lock = threading.Lock()
        #: For each model: replies, tokens of the messages, tokens of the replies.
        self.counts: dict[str, list[int]] = {name: list(row) for name, row in (counts or {}).items()}

    def count(self, model: object, usage: Any) -> None:
        """Count one reply."""
        name = name_of(model)
        said, replied = (usage.prompt_tokens, usage.completion_tokens) if usage is not None else (0, 0)
        with self._lock:
            row = self.counts.setdefault(name, [0, 0, 0])
            row[:] = [row[0] + 1, row[1] + said, row[2] + replied]


def name_of(model: object) -> str:
    """Return the name by which a model is counted: one that cannot be cached has no identity, and is called so too."""
    try:
        identity = getattr(model, "identity", None) or {}
    except TypeError:
        identity = {}
    return str(identity.get("model") or identity.get("name") or "model")


@contextmanager
def metered(meter: Meter) -> Iterator[Meter]:
    """Count in a block, in the calls that it has overlap too."""
    token = _METER.set(meter)
    try:
        yield meter
    finally:
        _METER.reset(token)


@contextmanager
def paused(name: str | None = None) -> Iterator[None]:
    """Do not count in a block: what is asked there is counted by who asks, and told of under the name of that."""
    before = _METER.set(None), _NAME.set(name)
    try:
        yield
    finally:
        _METER.reset(before[0])
        _NAME.reset(before[1])


def name_here(model: object) -> str:
    """Return the name under which a call of a model is told of: that of the client around it, if there is one."""
    return _NAME.get() or name_of(model)


def count(model: object, usage: Any) -> None:
    """Count one reply, if somebody counts."""
    meter = _METER.get()
    if meter is not None:
        meter.count(model, usage)
