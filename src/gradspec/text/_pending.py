"""Values on their way: calls that run while the program goes on, and what is to be made of their results."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import ContextVar, copy_context
from typing import Any

from gradspec.text._merge import Kind

#: The threads that one block may use at most: those of its calls, and those of calls that wait for another one.
THREADS = 4096
#: How many values are made before the first look for those that nobody waits for any more.
SWEEP = 256
_RUNNING: ContextVar[Scheduler | None] = ContextVar("gradspec.text.running", default=None)
_LOCAL = threading.local()
_LOG = logging.getLogger("gradspec.text")


class Pending:
    """A value that is waited for when it is read.

    Args:
        kind: What kind of data it will be.
        future: Where it will be.
    """

    __slots__ = ("__weakref__", "_read", "future", "kind")

    def __init__(self, kind: Kind, future: Future[Any]) -> None:
        self.kind, self.future = kind, future
        self._read = False

    def result(self) -> Any:
        """Wait for the value, or raise what came of it instead."""
        self._read = True
        inside = _RUNNING.get()
        if inside is None or self.future.done():
            return self.future.result()
        with inside.elsewhere():  # a call that waits for another one must not keep it from running
            return self.future.result()

    async def aresult(self) -> Any:
        """Await the value on the running loop."""
        self._read = True
        return await asyncio.shield(asyncio.wrap_future(self.future))

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


class Scheduler:
    """The calls of one block: up to a limit run at once, each as soon as what it needs is there.

    Args:
        limit: How many calls may run at once.
        ends: Whether `finish` or `stop` will be called; an error that nobody reads is else only logged.
    """

    def __init__(self, limit: int, *, ends: bool = True) -> None:
        self.limit = limit
        #: The places of the calls that run on an event loop.
        self.slots: asyncio.Semaphore | None = None
        self._ends = ends
        self._running = 0
        self._stopped = False
        self._ready: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="gradspec.text")
        #: In the order in which the program made them, until they are read or the block ends.
        self._made: list[Pending] = []
        self._sweep = SWEEP

    def start(
        self,
        kind: Kind,
        needs: Iterable[Pending],
        calls: Callable[[], Sequence[Callable[[], Any]]],
        combine: Callable[[list[Any]], Any],
    ) -> Pending:
        """Return what `combine` makes of the results of calls, which are known once everything they need is there.

        Of several errors the one of the first call is raised, whichever came first.
        """
        made = Pending(kind, Future())
        if len(self._made) >= self._sweep:
            self._made = [pending for pending in self._made if not pending.future.done() or pending.unread_error]
            self._sweep = 2 * len(self._made) + SWEEP
        if self._ends:
            self._made.append(made)
        needed = list(needs)
        context = copy_context()

        def begin() -> None:
            try:
                for need in needed:
                    need._read = True  # its error is ours from here on
                    need.future.result()
                context.run(self._begin, made.future, calls(), combine)
            except BaseException as error:
                _fail(made.future, error)

        _when_done([need.future for need in needed], begin)
        return made

    def finish(self) -> None:
        """Wait for everything, and raise the first error that nobody has read."""
        wait([pending.future for pending in self._made])
        self._threads.shutdown(wait=True)
        unread = [pending for pending in self._made if pending.unread_error is not None]
        for pending in unread:
            pending._read = True
        if unread:
            unread[0].future.result()

    def stop(self, *, patient: bool) -> None:
        """Start nothing more; wait for what runs, if patient."""
        with self._lock:
            self._stopped = True
            ready, self._ready = self._ready, deque()
        for run in ready:
            run()
        self._threads.shutdown(wait=patient, cancel_futures=True)
        for pending in self._made:
            pending._read = True  # the program fails of something else

    def elsewhere(self) -> _Elsewhere:
        """Let another call run while this one waits."""
        return _Elsewhere(self)

    def _begin(
        self, future: Future[Any], calls: Sequence[Callable[[], Any]], combine: Callable[[list[Any]], Any]
    ) -> None:
        results: list[Future[Any]] = [Future() for _ in calls]
        for call, result in zip(calls, results, strict=True):
            self._submit(call, result)

        def end() -> None:
            try:
                future.set_result(combine([result.result() for result in results]))
            except BaseException as error:
                _fail(future, error)

        _when_done(results, end)

    def _submit(self, call: Callable[[], Any], result: Future[Any]) -> None:
        context = copy_context()

        def run() -> None:
            if self._stopped:
                result.cancel()
                result.set_running_or_notify_cancel()
                return
            try:
                self._threads.submit(context.run, self._run, call, result)
            except RuntimeError as error:  # shut down meanwhile
                _fail(result, error)

        with self._lock:
            self._ready.append(run)
        self._next()

    def _run(self, call: Callable[[], Any], result: Future[Any]) -> None:
        from gradspec.text._overlap import alone

        _RUNNING.set(self)
        try:
            with alone():  # what a call calls is its own affair, one after the other
                value = call()
        except BaseException as error:
            self._ended()
            _fail(result, error)
        else:
            self._ended()
            result.set_result(value)

    def _ended(self) -> None:
        with self._lock:
            self._running -= 1
        self._next()

    def _next(self) -> None:
        with self._lock:
            if not self._ready or (self._running >= self.limit and not self._stopped):
                return
            run = self._ready.popleft()
            self._running += 1
        run()


class _Elsewhere:
    """A call that waits: its place is free meanwhile."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def __enter__(self) -> None:
        self._scheduler._ended()

    def __exit__(self, *_: object) -> None:
        with self._scheduler._lock:
            self._scheduler._running += 1


def _fail(future: Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)


def _when_done(futures: Sequence[Future[Any]], then: Callable[[], None]) -> None:
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
