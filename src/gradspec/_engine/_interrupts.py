"""Interrupts that Python drops, noticed before the next check."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts() -> Iterator[Callable[[], None]]:
    """Give what raises an interrupt again that has come meanwhile; an interrupt raises where it comes, as always.

    What is raised within a fork hook, a finalizer or a callback of the garbage collector is printed and dropped: an
    interrupt that comes there would be lost, and the run would go on to its end.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield lambda: None
        return
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)
        before(number, frame)

    def again() -> None:
        if came and threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, note)
    try:
        yield again
    finally:
        signal.signal(signal.SIGINT, before)
