"""A plugin for `nox -s coverage`: laws run in the process of the tests, where coverage sees them.

The tests of the engine and of the command line keep their child processes: some of what they run ends its process.
"""

from __future__ import annotations

from typing import Any

from gradspec._engine import _session

#: Folders of tests whose functions may end the process that runs them.
AS_IT_IS = ("engine", "cli")


def pytest_runtest_setup(item: Any) -> None:
    _session.Session.__init__ = _made_apart if item.path.parent.name in AS_IT_IS else _made_here  # type: ignore[method-assign]


_made_apart = _session.Session.__init__


def _made_here(self: Any, checks: Any, profile: Any, *, isolate: bool | None = None, **how: Any) -> None:
    _made_apart(self, checks, profile, isolate=False if isolate is None else isolate, **how)
