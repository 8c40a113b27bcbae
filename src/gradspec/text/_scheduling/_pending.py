"""Values on their way, and what is done once they are there."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from gradspec.text._data import Kind

if TYPE_CHECKING:
    from gradspec.text._scheduling._scheduler import Scheduler

T = TypeVar("T")

#: What runs the call that is being made here.
RUNNING: ContextVar[Scheduler | None] = ContextVar("gradspec.text.running", default=None)
_LOCAL = threading.local()
_LOG = logging.getLogger("gradspec.text")


class Pending:
    """A value that is waited for when it is read.

    Args:
        kind: What kind of data it will be.
        future: Where it will be.
    """

    __slots__ = ("__weakref__", "_process", "_read", "future", "kind")

    def __init__(self, kind: Kind, future: Future[Any]) -> None:
        self.kind, self.future = kind, future
        self._read = False
        self._process = os.getpid()

    @property
    def is_lost(self) -> bool:
        """Whether it was on its way when this process was forked: who brings it is only in the other one."""
        return self._process != os.getpid() and not self.future.done()

    def check(self) -> None:
        """Raise if it never comes."""
        if self.is_lost:
            raise RuntimeError(
                "a value was on its way when the process was forked, and comes only in the parent; read it, or end the "
                "`concurrency` block, before the fork"
            )

    def result(self) -> Any:
        """Wait for the value, or raise what came of it instead."""
        self._read = True
        self.check()
        inside = RUNNING.get()
        if inside is None or self.future.done():
            return self.future.result()
        with inside.elsewhere():  # a call that waits for another one must not keep it from running
            return self.future.result()

    async def aresult(self) -> Any:
        """Await the value on the running loop."""
        self._read = True
        self.check()
        return await shielded(self.future)

    @property
    def unread_error(self) -> BaseException | None:
        """What was raised, if it is there and nobody has seen it."""
        if self._read or not self.future.done() or self.future.cancelled():
            return None
        return self.future.exception()

    def __del__(self) -> None:
        error = self.unread_error
        if error is not None:
            _LOG.error("a call failed and nobody read what it returned: %r", error)


async def shielded(future: Future[T], seconds: float | None = None) -> T:
    """Await a future of another thread; who stops waiting must not stop what others wait for."""
    inner = asyncio.wrap_future(_without_stop(future))
    try:
        return await asyncio.wait_for(asyncio.shield(inner), seconds)
    except (asyncio.CancelledError, TimeoutError):
        inner.add_done_callback(lambda done: done.cancelled() or done.exception())  # else asyncio prints its error
        raise


def no_stop(call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Make a call for a thread that an event loop waits for: of a StopIteration it would wait for ever.

    Example:
        >>> no_stop(next, iter([]))
        Traceback (most recent call last):
        ...
        RuntimeError: the call raised StopIteration
    """
    try:
        return call(*args, **kwargs)
    except StopIteration as error:
        raise RuntimeError("the call raised StopIteration") from error


def _without_stop(future: Future[T]) -> Future[T]:
    """Return a future that ends as another one, for an event loop: see `no_stop`."""
    told: Future[T] = Future()

    def end(done: Future[T]) -> None:
        if done.cancelled():
            told.cancel()
        elif told.set_running_or_notify_cancel():  # else nobody waits any more
            try:
                told.set_result(no_stop(done.result))
            except BaseException as error:
                told.set_exception(error)

    future.add_done_callback(end)
    return told


def fail(future: Future[Any], error: BaseException) -> None:
    """End a future that may have ended already."""
    if not future.done():
        future.set_exception(error)


def when_done(futures: Sequence[Future[Any]], then: Callable[[], None]) -> None:
    """Call `then` once, when all futures are done: at once, or in the thread that ends the last one."""
    left = len(futures)
    lock = threading.Lock()
    # A future keeps what it calls; what that holds is let go of.
    held = [then]

    def one(_: Future[Any]) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = not left
        if last:
            _soon(held.pop())

    if not futures:
        _soon(then)
    for future in futures:
        future.add_done_callback(one)


def _soon(then: Callable[[], None]) -> None:
    """Call `then` once the call in hand has returned: a long chain of values must not be a deep stack."""
    waiting: deque[Callable[[], None]] | None = getattr(_LOCAL, "waiting", None)
    if waiting is not None:
        waiting.append(then)
        return
    _LOCAL.waiting = waiting = deque([then])
    try:
        while waiting:
            waiting.popleft()()
    finally:
        _LOCAL.waiting = None
