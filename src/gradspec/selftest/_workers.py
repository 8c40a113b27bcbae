"""A few processes that share a list of work: each takes every n-th item, and sends what it made as it comes."""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


def made_by(work: Callable[[Item], Made], items: Sequence[Item], jobs: int) -> Iterator[Made]:
    """Yield `work(item)` for each item, as they come; in this process where `jobs` is 1.

    The processes are forked, so that items need not be pickled; what is made is.

    Raises:
        RuntimeError: a process ended before its work was done; its error stands on stderr.
    """
    if jobs == 1:
        yield from map(work, items)
        return
    fork = multiprocessing.get_context("fork")
    answers = fork.SimpleQueue()  # a Queue would have a thread, beside which the workers could not fork
    workers: list[Any] = [
        fork.Process(target=_work, args=(work, items[k::jobs], answers), daemon=False) for k in range(jobs)
    ]
    for worker in workers:
        worker.start()
    busy = jobs
    try:
        while busy:
            answer = answers.get()
            if answer is None:
                busy -= 1
            elif isinstance(answer, BaseException):
                raise RuntimeError(f"a worker ended before its work was done: {answer}")
            else:
                yield answer
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()


def _work(work: Callable[[Any], Any], items: Sequence[Any], answers: Any) -> None:
    import torch

    torch.set_num_threads(1)
    try:
        for item in items:
            answers.put(work(item))
    except BaseException as error:
        traceback.print_exc()
        answers.put(RuntimeError(repr(error)))
    answers.put(None)
    os._exit(0)
