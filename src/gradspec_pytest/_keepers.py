"""What takes the verdicts of all tests as they come, and says at the end what they come to."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gradspec_pytest._run import Run, kept, targets_of

if TYPE_CHECKING:
    pass


#: The attribute of a test's report that holds a verdict.
VERDICT = "gradspec_verdict"


#: Beside it: how many its law has on its spec.
OF = "gradspec_of"


#: Beside it: whether it is of a target, as the record is.
KEPT = "gradspec_kept"


class VacuousKeeper:
    """Says at the end which laws held on every case of a spec, and would have held for a wrong result too."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self.of: dict[tuple[str, str], int] = {}
        self.texts: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the verdict of a test."""
        if (text := getattr(report, VERDICT, None)) is not None:
            verdict = json.loads(text)
            key = (verdict["spec"], verdict["law"])
            self.found.setdefault(key, []).append(verdict)
            self.of[key] = getattr(report, OF)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Judge each law on the specs whose cases all ran; a law that shows nothing fails the run."""
        whole = [found for key, found in self.found.items() if len(found) == self.of[key]]
        if not any("blind" in verdict["details"] for found in whole for verdict in found):
            return
        from gradspec._engine._vacuous import settled
        from gradspec.law import Status
        from gradspec.render import failure_text
        from gradspec.report import verdict_from_dict

        for found in whole:
            vacuous = [v for v in settled(map(verdict_from_dict, found)) if v.status is Status.VACUOUS]
            self.texts += [failure_text(verdict) for verdict in vacuous[:1]]
        if self.texts and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say which."""
        for text in self.texts:
            terminalreporter.section("gradspec: a law shows nothing", red=True)
            terminalreporter.write_line(text)


class RecordKeeper:
    """Takes the verdicts of a run as they come, and writes them at its end."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.found: list[dict[str, Any]] = []
        self.line = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the verdict of an item."""
        if (verdict := getattr(report, VERDICT, None)) is not None and getattr(report, KEPT):
            self.found.append(json.loads(verdict))

    def pytest_sessionfinish(self) -> None:
        """Write the record, with what an earlier one holds beside it."""
        if not self.found or not (targets := targets_of(self.config)):
            return
        from gradspec._engine._reuse import current, merged
        from gradspec._engine._vacuous import settled
        from gradspec._record import only_writer
        from gradspec.report import verdict_from_dict, write_record

        run = Run.of(self.config, targets)
        path, known = Path(self.config.option.gradspec_record), run.known
        report = replace(run.blank, verdicts=tuple(map(verdict_from_dict, self.found)))
        reused = len(current(known, run.blank, run.checks)) if known else 0
        with only_writer(path):
            there = kept(path)  # another run may have written to it since
            write_record(merged(there, report) if there else replace(report, verdicts=settled(report.verdicts)), path)
        self.line = f"gradspec: {reused:,} of {len(self.found):,} cells were current; written to {path}"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what was measured."""
        if self.line:
            terminalreporter.write_line(self.line)
