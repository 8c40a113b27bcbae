"""That nobody waits any more for what a thread does: it starts no further call, and an async one is cancelled."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

#: What stops the calls that are made here.
STOP: ContextVar[Stop | None] = ContextVar("gradspec.text.stop", default=None)


class Stop:
    """Whether calls in threads were given up, and what they wait for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = False
        self._awaited: set[Future[Any]] = set()

    def now(self) -> None:
        """Give all calls up."""
        with self._lock:
            self._stopped = True
            awaited = [*self._awaited]
        for future in awaited:
            future.cancel()

    def check(self) -> None:
        """Raise if the calls were given up."""
        if self._stopped:
            raise CancelledError

    @contextmanager
    def cancels(self, future: Future[Any]) -> Iterator[None]:
        """Have a future cancelled if the calls are given up in the block."""
        with self._lock:
            self._awaited.add(future)
        try:
            self.check()
            yield
        finally:
            with self._lock:
                self._awaited.discard(future)


def check_stopped() -> None:
    """Raise `CancelledError` if nobody waits for what is done here."""
    stop = STOP.get()
    if stop is not None:
        stop.check()
