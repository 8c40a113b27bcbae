"""Python's searches for cycles of objects, where they can find nothing that matters.

At its end Python searches all that it has made, twice, just to give back what the system takes anyhow: over a second
once torch is imported, two with its compiler. Frozen objects are not searched. And what is imported stays: the searches
meanwhile are a quarter of the time of an import.
"""

import atexit
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_search() -> Iterator[None]:
    """Import much within this, without a search."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def fork() -> int:
    """Fork as `os.fork` does; in the new process no search ends what this one has left behind.

    The end of a group of ranks waits for its threads, which a fork does not have, and Python may search for it as soon
    as the fork is made.
    """
    with no_search():
        if not (child := os.fork()):
            gc.freeze()
    return child


def skip_last_search() -> None:
    """Let this process end without a search of the objects that it leaves, or with one if that keeps it quiet."""
    atexit.register(_skip)


def _skip() -> None:
    # nanobind prints a list of what it made and outlives the last search; triton 3.9, which torch 2.15 brings, is made
    # with it. The second search is enough for it, and `disable` skips the first one only.
    made_with_nanobind = any(type(cls).__module__ == "nanobind" for cls in object.__subclasses__())
    (gc.disable if made_with_nanobind else gc.freeze)()
