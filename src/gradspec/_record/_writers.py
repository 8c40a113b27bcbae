"""Writers of one record: they wait for one another, and put aside what cannot be read."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from gradspec._record._file import followed


def put_aside(path: Path) -> Path:
    """Rename a file that cannot be read to `NAME.unreadable`, or a number behind that, and return its new path."""
    path = followed(path)
    endings = itertools.chain([""], (f".{number}" for number in itertools.count(2)))
    names = (path.with_name(f"{path.name}.unreadable{ending}") for ending in endings)
    aside = next(name for name in names if not os.path.lexists(name))
    return path.rename(aside)


@contextlib.contextmanager
def only_writer(path: Path, waiting: Callable[[str], None] | None = None) -> Iterator[None]:
    """Wait until nobody else is between reading and writing a record of this folder.

    Args:
        path: the record.
        waiting: called with a sentence, if somebody else is.

    The lock is on the folder, so that no file is left behind; where a system has none, two writers do not merge.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    path = followed(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting is not None:
                waiting(f"waiting for another process that has locked {path.parent} to write a record")
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
