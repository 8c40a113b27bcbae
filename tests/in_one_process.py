"""A plugin for `nox -s coverage`: laws run in the process of the tests, where coverage sees them.

The tests of the engine and of the command line keep their child processes: some of what they run ends its process. Such
a child is killed once nobody asks it any more; here it may end by itself first, and saves what it has measured.
"""

from __future__ import annotations

from multiprocessing.connection import wait
from typing import Any

from gradspec._engine import _child, _session

#: Folders of tests whose functions may end the process that runs them.
AS_IT_IS = ("engine", "cli")
#: How many seconds a child has to save what it has measured. One that hangs is killed after them.
GRACE = 2.0


def pytest_configure(config: Any) -> None:
    _child.Child._reap = let_go  # type: ignore[method-assign]


def pytest_runtest_setup(item: Any) -> None:
    _session.Session.__init__ = _made_apart if item.path.parent.name in AS_IT_IS else _made_here  # type: ignore[method-assign]


_made_apart, _reap = _session.Session.__init__, _child.Child._reap


def _made_here(self: Any, checks: Any, profile: Any, *, isolate: bool | None = None, **how: Any) -> None:
    _made_apart(self, checks, profile, isolate=False if isolate is None else isolate, **how)


def let_go(self: Any) -> tuple[int, str]:
    """Close the pipe of a child, which ends it, and return its exit code and the stack that it left."""
    self._pipe.close()
    wait([self._end], GRACE)
    return _reap(self)
