"""A limit on what a spec does in this process: that of an answer of a child (see `_clock`)."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from gradspec._clock import Clock


class LimitError(BaseException):
    """A limit was passed; the text says which."""


@contextmanager
def within(limit: float) -> Iterator[None]:
    """Limit the CPU time, and the time asleep, of what runs here; only Linux can, and only in the main thread.

    Raises:
        LimitError: it was passed.
    """
    if not sys.platform.startswith("linux") or threading.current_thread() is not threading.main_thread():
        yield
        return
    done, passed, runs = threading.Event(), "", threading.get_ident()

    def look() -> None:
        nonlocal passed
        clock = Clock(os.getpid(), limit, from_inside=True)
        while not done.wait(clock.look):
            if passed := clock.ran_out() or passed:
                signal.pthread_kill(runs, signal.SIGXCPU)  # again at each look: what runs may go on

    def end(*_: object) -> None:
        if not done.is_set():
            raise LimitError(passed)

    before, thread = signal.signal(signal.SIGXCPU, end), threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        signal.signal(signal.SIGXCPU, signal.SIG_DFL if before is None else before)
