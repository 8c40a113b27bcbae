"""Run items of work in child processes, and take what each made of it as it comes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from gradspec._engine._child import Child
from gradspec._engine._pool import run_groups
from gradspec.law import Finding

Item = TypeVar("Item")
Made = TypeVar("Made")

#: Every law has a limit of its own; an hour ends what hangs outside of them.
LIMIT = 3600


def run_items(
    work: Callable[[Item], Made],
    items: Sequence[Item],
    take: Callable[[Made], None],
    *,
    jobs: int,
    on: Callable[[], bool] = lambda: True,
) -> None:
    """Call `take(work(item))` for each item; whoever is free works on the next one.

    Args:
        work: runs in a child process, or in this one if there is one job. The children are forked, so that items need
            not be pickled; what is made is.
        items: the work, in order.
        take: runs in this process, one call at a time.
        jobs: the number of processes.
        on: asked before each item but the first; if it says no, no more are worked on.

    Raises:
        RuntimeError: a child ended before it answered; its error is on stderr.
    """
    if jobs == 1:
        for number, item in enumerate(items):
            if number and not on():
                return
            take(work(item))
        return
    lock, lost = threading.Lock(), list[Finding]()

    def run(child: Child[int, Made], number: int) -> None:
        made = child.ask(number)
        with lock:
            if isinstance(made, Finding):
                lost.append(made)
            elif not lost:
                take(made)

    children = [Child[int, Made](lambda number: work(items[number]), time_limit=LIMIT) for _ in range(jobs)]
    run_groups([[number] for number in range(len(items))], children, run, on=lambda: not lost and on())
    if lost:
        raise RuntimeError(f"a worker ended before its work was done: {lost[0].message}")
