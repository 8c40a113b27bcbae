"""A plugin for `nox -s lab -- coverage`: laws run in the process of the tests, one at a time, where coverage sees them.

The tests of the engine and of the command line keep their child processes: some of what they run ends its process. Such
a child is killed once nobody asks it any more; here it may end by itself first, and saves what it has measured.

`python tests/in_one_process.py check gradspec.functions` runs a command of ours so; `selftest` keeps its children.
"""

from __future__ import annotations

import sys
from multiprocessing.connection import wait
from typing import Any

from gradspec._engine import _child, _session, _verify

#: Folders of tests whose functions may end the process that runs them.
AS_IT_IS = ("engine", "cli")
#: How many seconds a child has to save what it has measured. One that hangs is killed after them.
GRACE = 15.0


def pytest_configure(config: Any) -> None:
    _child.Child._reap = let_go  # type: ignore[method-assign]


def pytest_runtest_setup(item: Any) -> None:
    together(item.path.parent.name not in AS_IT_IS)


def together(here: bool) -> None:
    """Let laws run in this process unless they are told where, or let them run as ever."""
    _session.Session.__init__ = _made_here if here else _made_apart  # type: ignore[method-assign]
    # Several sessions run in threads of this process: laws beside one another, which call sound functions broken.
    _verify.run_checks = _run_here if here else _run_apart


_made_apart, _run_apart, _reap = _session.Session.__init__, _verify.run_checks, _child.Child._reap


def _made_here(self: Any, checks: Any, profile: Any, *, isolate: bool | None = None, **how: Any) -> None:
    _made_apart(self, checks, profile, isolate=False if isolate is None else isolate, **how)


def _run_here(checks: Any, profile: Any, *, isolate: bool | None = None, **how: Any) -> Any:
    return _run_apart(checks, profile, isolate=False if isolate is None else isolate, **how)


def let_go(self: Any) -> tuple[int, str]:
    """Close the pipe of a child, which ends it, and return its exit code and the stack that it left."""
    self._pipe.close()
    wait([self._end], GRACE)
    return _reap(self)


if __name__ == "__main__":
    from gradspec.cli import main as gradspec
    from gradspec_lab.__main__ import main as laboratory

    is_selftest = sys.argv[1] == "selftest"
    pytest_configure(None)
    together(not is_selftest)  # of the specimens, some end the process that runs them
    (laboratory if is_selftest else gradspec)(sys.argv[1:])
