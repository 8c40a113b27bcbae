"""Whether a child of this process can take a gradient: torch refuses it once autograd has threads of its own.

The first backward of a process starts a thread for each device that torch counts, and a child that is forked later has
none of them. Where no device is at hand it starts none, but that a CUDA build counts one from the first fake tensor on,
and a compilation makes those. A backward that comes before settles it.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path

from gradspec._clock import Clock
from gradspec._engine._fork import after_fork, quiet_moment

#: How many seconds of CPU time a child may take for the gradient of one number, or sleep: it may wait for a lock that
#: another thread has held.
PATIENCE = 10.0
#: The threads of this process when a child could.
_able: frozenset[str] = frozenset()


def settle() -> None:
    """Take a gradient where torch is built for CUDA and finds no device: autograd starts no threads now, nor later."""
    import torch

    if torch.version.cuda is not None and not torch.cuda.device_count():
        torch.ones((), requires_grad=True).backward()  # type: ignore[no-untyped-call]  # torch's own


def children_take_gradients() -> bool:
    """Whether a child that is forked now can call backward; a child is asked.

    While this process starts no other thread, autograd has none of its own, and a child that could is not asked again.
    """
    global _able
    threads = frozenset(task.name for task in Path("/proc/self/task").iterdir())
    if not threads <= _able:
        _able = threads if _asked() else frozenset()
    return bool(_able)


def _asked() -> bool:
    with quiet_moment():
        if not (child := os.fork()):
            _try()
        end = os.pidfd_open(child)
    try:
        clock = Clock(child, PATIENCE)
        while not wait([end], clock.look):
            if clock.ran_out():
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
                break
        _, status = os.waitpid(child, 0)
    finally:
        os.close(end)
    return status == 0


def _try() -> None:
    import torch

    try:
        after_fork()
        torch.ones((), requires_grad=True).backward()  # type: ignore[no-untyped-call]  # torch's own
        os._exit(0)
    finally:
        os._exit(1)
