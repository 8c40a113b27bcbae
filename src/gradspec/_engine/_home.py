"""Run forks and imports in the thread that started the run, for all of its threads.

A child that is forked elsewhere waits for ever for the lock of a module that this thread is importing, as where a
module verifies its specs when it is imported.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

Made = TypeVar("Made")

_local = threading.local()


def at_home(work: Callable[[], Made]) -> Made:
    """Return `work()`, done by the home of this thread; by this thread where it has none."""
    home: Home | None = getattr(_local, "home", None)
    return work() if home is None else home.have(work)


class Home:
    """Does work for the threads that it has adopted, in the thread that calls `serve`."""

    def __init__(self) -> None:
        self._asked = SimpleQueue[Callable[[], object]]()
        self._open, self._lock = True, threading.Lock()

    def adopt(self) -> None:
        """Do from now on what this thread asks `at_home` for."""
        _local.home = self

    def have(self, work: Callable[[], Made]) -> Made:
        """Return what the home made of some work.

        Raises:
            CancelledError: the home is closed.
        """
        made = Future[Made]()
        with self._lock:
            if self._open:
                self._asked.put(partial(_do, made, work))
            else:
                made.cancel()
        return made.result()

    def serve(self, threads: list[Future[Any]]) -> None:
        """Do what the threads ask for until all of them have ended, or one has failed."""
        for thread in threads:
            thread.add_done_callback(lambda _: self._asked.put(lambda: None))
        while not all(thread.done() for thread in threads):
            self._asked.get()()
            if any(thread.done() and thread.exception() for thread in threads):
                return

    def close(self) -> None:
        """Refuse what is asked for from now on, and what still waits."""
        with self._lock:
            self._open = False
        while not self._asked.empty():
            work = self._asked.get()
            if isinstance(work, partial):
                work.args[0].cancel()


def _do(made: Future[Made], work: Callable[[], Made]) -> None:
    try:
        made.set_result(work())
    except BaseException as error:
        made.set_exception(error)
        if not isinstance(error, Exception):
            raise  # the user's interrupt
