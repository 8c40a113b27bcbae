"""`pytest --gradspec-watch`: the custom gradients that the tests run, each audited on the calls that they make."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from gradspec._watch._begin import begin
from gradspec._watch._environment import FOLDER, ONLY, SCOPES


def _scopes(given: str | None) -> tuple[str, ...]:
    from gradspec._scope import scopes_of

    return () if given is None else scopes_of(given)


class TestsWatch:
    """The watch of the process that runs tests; the one that reports makes the folder of all of them."""

    __test__ = False

    def __init__(self, config: pytest.Config) -> None:
        self._is_worker = hasattr(config, "workerinput")
        if not self._is_worker:
            os.environ[FOLDER] = tempfile.mkdtemp(prefix="gradspec-watch-")
            os.environ[ONLY] = ",".join(config.option.gradspec_watch_only)
            os.environ[SCOPES] = ",".join(_scopes(config.option.gradspec_scope))
        self._folder, self._only = Path(os.environ[FOLDER]), tuple(config.option.gradspec_watch_only)
        self._begun = begin(until_exit=False)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Audit what this process has seen."""
        if self._begun is not None:
            self._begun.end()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Audit what no process could, and report all of it."""
        from gradspec._watch._apart import audit_the_rest
        from gradspec._watch._store import read_watch
        from gradspec._watch._text import text

        audit_the_rest(self._folder, lambda name: None, self._only)
        terminalreporter.section("gradspec watch")
        program = read_watch(self._folder, only=self._only).with_files_in(None)
        terminalreporter.write_line(text(program, details=terminalreporter.config.option.verbose > 1))

    def pytest_unconfigure(self) -> None:
        """Remove the folder."""
        if not self._is_worker:
            for name in (FOLDER, ONLY, SCOPES):
                os.environ.pop(name, None)
            shutil.rmtree(self._folder, ignore_errors=True)
