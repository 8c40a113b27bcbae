"""The scheduler that runs the calls of a block while the program goes on."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any

from gradspec.text._data import Kind
from gradspec.text._scheduling._pending import RUNNING, Pending, fail, when_done
from gradspec.text._scheduling._position import branches

#: The threads that one block may use at most: those of its calls, and those of calls that wait for another one.
THREADS = 4096
#: How many values are made before the first look for those that nobody waits for any more.
SWEEP = 256


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
        self._stopped = False
        self._renew()
        #: In the order in which the program made them, until they are read or the block ends.
        self._made: list[Pending] = []
        self._sweep = SWEEP

    def _renew(self) -> None:
        """Begin with nothing under way; a fork has neither the threads nor what they do."""
        self._process = os.getpid()
        self._running = 0
        self._ready: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="gradspec.text")

    def _here(self) -> None:
        if self._process != os.getpid():
            self._renew()

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
        self._here()
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
                    need.check()
                    need.future.result()
                context.run(self._begin, made.future, calls(), combine)
            except BaseException as error:
                fail(made.future, error)

        when_done([need.future for need in needed if not need.is_lost], begin)
        return made

    def finish(self) -> None:
        """Wait for everything, and raise the first error that nobody has read."""
        self._here()
        wait([pending.future for pending in self._made if not pending.is_lost])
        self._threads.shutdown(wait=True)
        for pending in self._made:
            if not pending._read:
                pending.check()
        unread = [pending for pending in self._made if pending.unread_error is not None]
        for pending in unread:
            pending._read = True
        if unread:
            unread[0].future.result()

    def stop(self, *, patient: bool) -> None:
        """Start nothing more; wait for what runs, if patient."""
        self._here()
        with self._lock:
            self._stopped = True
            ready, self._ready = self._ready, deque()
        for run in ready:
            run()
        self._threads.shutdown(wait=patient, cancel_futures=True)
        for pending in self._made:
            pending._read = True  # the program fails of something else

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Let another call run while this one waits: its place is free meanwhile."""
        self._ended()
        try:
            yield
        finally:
            with self._lock:
                self._running += 1

    def _begin(
        self, future: Future[Any], calls: Sequence[Callable[[], Any]], combine: Callable[[list[Any]], Any]
    ) -> None:
        results: list[Future[Any]] = [Future() for _ in calls]
        for place, call, result in zip(branches(len(calls)), calls, results, strict=True):
            with place:
                self._submit(call, result)

        def end() -> None:
            try:
                future.set_result(combine([result.result() for result in results]))
            except BaseException as error:
                fail(future, error)

        when_done(results, end)

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
                fail(result, error)

        with self._lock:
            self._ready.append(run)
        self._next()

    def _run(self, call: Callable[[], Any], result: Future[Any]) -> None:
        from gradspec.text._scheduling._overlap import alone

        RUNNING.set(self)
        try:
            with alone():  # what a call calls is its own affair, one after the other
                value = call()
        except BaseException as error:
            self._ended()
            fail(result, error)
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
