"""A moment for a fork: no other thread holds what the child would wait for, as nobody there gives it back.

That is what torch locks while it makes something once, and what Python locks while it imports a module.
"""

from __future__ import annotations

import importlib._bootstrap
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: Where torch keeps its locks.
_TORCHS = (("torch.cuda", "_initialization_lock"), ("torch._dynamo.convert_frame", "compile_lock"))
#: How many seconds other threads are waited for: an import may be waiting for this run.
PATIENCE = 10.0

#: One fork at a time: a child that was forked between another's pipe and its fork would keep that pipe open, and nobody
#: would see the other die.
_forking = threading.Lock()
#: What the thread that forks holds.
_held: list[Any] = []


@contextmanager
def quiet_moment() -> Iterator[None]:
    """Wait for a moment in which a fork is safe, and let it last: fork within; the child calls `after_fork` first."""
    end = time.monotonic() + PATIENCE
    with _forking:
        while True:
            while _others_import() and time.monotonic() < end:
                time.sleep(0.005)
            _held[:] = [lock for lock in _torchs() if lock.acquire(timeout=max(0.0, end - time.monotonic()))]
            if not _others_import() or time.monotonic() > end:
                break
            _release()  # an import that began meanwhile may wait for one of these
        try:
            yield
        finally:
            _release()


def after_fork() -> None:
    """Give back, in the child, what the thread that forked it holds, and leave CUDA out if it cannot be used there."""
    _release()
    _forking.release()
    without_cuda()


def without_cuda() -> None:
    """Let there be no CUDA in a child in which torch refuses it: its compiler asks whether it is there, and uses it.

    It is so once the parent has asked how many devices there are, though it has used none.
    """
    cuda: Any = sys.modules.get("torch.cuda")
    if cuda is not None and cuda._is_in_bad_fork():
        cuda.is_available, cuda.device_count = (lambda: False), (lambda: 0)


def _release() -> None:
    while _held:
        _held.pop().release()


def _torchs() -> Iterator[Any]:
    for name, attribute in _TORCHS:
        if (lock := getattr(sys.modules.get(name), attribute, None)) is not None:
            yield lock


def _others_import() -> bool:
    """Whether another thread is importing a module."""
    locks = [reference() for reference in list(vars(importlib._bootstrap).get("_module_locks", {}).values())]
    owners = {getattr(lock, "owner", None) for lock in locks}
    return bool(owners - {None, threading.get_ident()})
