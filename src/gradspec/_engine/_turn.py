"""One run at a time in a process: what laws look at, and change for a moment, all threads share."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

#: A run within a run is of the same thread, and need not wait.
_turn = threading.RLock()

#: One for each run that this process is within, or was forked in: what is called then is no call of a program.
RUNS: set[object] = set()


@contextmanager
def measuring() -> Iterator[None]:
    """Let a watch of the program leave out what is called meanwhile."""
    run = object()
    RUNS.add(run)
    try:
        yield
    finally:
        RUNS.discard(run)


def one_at_a_time(run: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Let calls from several threads wait for one another."""

    @wraps(run)
    def in_turn(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        with _turn, measuring():
            return run(*args, **kwargs)

    return in_turn


def _anew() -> None:
    """Let a child begin: the thread that had its turn in the parent may not be there."""
    global _turn
    _turn = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_anew)
