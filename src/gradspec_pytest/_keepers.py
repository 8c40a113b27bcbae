"""Collect the verdicts of all tests, and summarise them at the end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gradspec_pytest._run import Run, targets_of

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
        from gradspec.findings import findings
        from gradspec.law import Status, verdict_from_dict
        from gradspec.render import finding_text
        from gradspec.report import Report

        said = (v for found in whole for v in settled(map(verdict_from_dict, found)))
        vacuous = tuple(v for v in said if v.status is Status.VACUOUS)
        report = Report(provenance={}, sheets={}, laws={}, sources={}, verdicts=vacuous)
        self.texts += map(finding_text, findings(report))
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

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the record, with what an earlier one holds beside it."""
        if not self.found or not (targets := targets_of(self.config)):
            self.line = f"gradspec: no law of a target ran, so {self.config.option.gradspec_record} is not written"
            return
        from gradspec._engine._reuse import current, grown
        from gradspec._record import RecordError, is_device, only_writer, put_aside, write
        from gradspec.law import verdict_from_dict
        from gradspec.report import read_records, records_to_json

        run = Run.of(self.config, targets)
        path, known = Path(self.config.option.gradspec_record), run.known
        report = replace(run.blank, verdicts=tuple(map(verdict_from_dict, self.found)))
        reused = len(current(known, run.blank, run.checks)) if known else 0
        if exitstatus == pytest.ExitCode.INTERRUPTED:
            there = {v.cell for v in report.verdicts}
            report = replace(report, missing=tuple(c.cell for c in run.checks if c.cell not in there))
        aside, planned = "", [check.cell for check in run.checks]
        with only_writer(path):
            try:
                is_there = path.exists() and not is_device(path)
                reports = read_records(path) if is_there else ()  # another run may have written to it since
            except RecordError:
                reports, aside = (), f"; what was there cannot be read, and is kept as {put_aside(path)}"
            write(records_to_json(grown(reports, report, planned)), path)
        self.line = f"gradspec: {reused:,} of {len(self.found):,} cells were current; written to {path}{aside}"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what was measured."""
        if self.line:
            terminalreporter.write_line(self.line)
