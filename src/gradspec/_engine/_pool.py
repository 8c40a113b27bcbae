"""Run groups of work on a few workers, each a child process of its own: whoever is free takes the next group."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Protocol, TypeVar

from gradspec._engine._home import Home


class Worker(Protocol):
    """The worker in a child process."""

    def start(self) -> None:
        """Fork the child, if there is none that lives."""

    def close(self) -> None:
        """End the child, if there is one."""


AnyWorker = TypeVar("AnyWorker", bound=Worker)
Item = TypeVar("Item")


def run_groups(
    groups: Iterable[Sequence[Item]],
    workers: Sequence[AnyWorker],
    run: Callable[[AnyWorker, Item], None],
    *,
    on: Callable[[], bool] = lambda: True,
    meanwhile: Callable[[], object] = lambda: None,
) -> int:
    """Have each group run by one worker, its items in order, and close the workers.

    One worker runs in this thread, and several in threads that have this one as their home.

    Args:
        groups: the work; items of one group stay together.
        workers: not started yet; at least one.
        run: runs one item; several workers run in threads of this process, so what it writes must bear that.
        on: asked before each group but the first; where it says no, no more are run.
        meanwhile: done in this thread while the first of several workers runs, before the others start.

    Returns:
        How many groups were left.
    """
    left, stop, lock = deque(groups), threading.Event(), threading.Lock()
    given = len(left)

    def take() -> Sequence[Item]:
        with lock:
            return left.popleft() if left and (len(left) == given or on()) else ()

    def serve(worker: AnyWorker) -> None:
        while group := take():
            for item in group:
                if stop.is_set():
                    return
                run(worker, item)

    home = Home()
    with ExitStack() as stack:
        # What is entered last ends first: no new item and no new child, then the children that threads wait for, then
        # the threads; and then each child that was forked meanwhile.
        for worker in workers:
            stack.callback(worker.close)
        if len(workers) == 1:
            serve(workers[0])
            return len(left)
        pool = stack.enter_context(ThreadPoolExecutor(len(workers), initializer=home.adopt))
        for worker in workers:
            stack.callback(worker.close)
        stack.callback(home.close)
        stack.callback(stop.set)
        running = []
        for number, worker in enumerate(workers):
            worker.start()
            running.append(pool.submit(serve, worker))
            if number == 0:
                meanwhile()
        home.serve(running)
        for thread in running:
            thread.result()
    return len(left)


def processors() -> int:
    """Return how many processors this process may use: a container has fewer than the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
