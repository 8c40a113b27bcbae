"""A call that would end this process raises instead: a run that ends with 0 and without a word reads as passed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gradspec._one_line import in_short

#: By name in `os`: what ends a process on the spot, or puts another program in its place.
_ENDINGS = ("_exit", "abort", "execv", "execve")
_lock = threading.Lock()
#: How many blocks of `endings_raise` are open, and what the first of them has replaced.
_open, _before = 0, dict[str, Callable[..., Any]]()


class EndedError(SystemExit):
    """Code of a user would have ended the process; the text is the call that does."""


@contextmanager
def endings_raise() -> Iterator[None]:
    """Have what ends this process raise an `EndedError` here; a process that is forked here may end as it likes."""
    global _open
    with _lock:
        _open += 1
        if _open == 1:
            _before.update({name: getattr(os, name) for name in _ENDINGS if hasattr(os, name)})
            for name, call in _before.items():
                setattr(os, name, _raising(name, call))
    try:
        yield
    finally:
        with _lock:
            _open -= 1
            if not _open:
                for name, call in _before.items():
                    setattr(os, name, call)


def _raising(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    here = os.getpid()

    def ending(*args: Any, **kwargs: Any) -> Any:
        if not _open or os.getpid() != here:  # a module that was imported here may have kept it
            return call(*args, **kwargs)
        first = "".join(map(in_short, args[:1]))  # an environment may follow
        raise EndedError(f"os.{name}({first}{', ...' * (len(args) > 1)})")

    return ending
