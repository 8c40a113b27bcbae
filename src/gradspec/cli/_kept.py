"""The record of a run on disk: what of it is still valid, and how it grows."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, TypeVar

from gradspec._record import Cell, RecordError, is_device, only_writer, put_aside
from gradspec._registry._twins import refuse_twins
from gradspec.cli._say import say
from gradspec.cli._shared import Interrupted, refuse_another_record, save
from gradspec.report import KIND, KIND_OF_SEVERAL, Report, read_records, records_to_json

Recorded = TypeVar("Recorded")


class Kept:
    """The record at a path, if there is one and it can be read.

    Args:
        path: where the record is, or will be; None: there is none.
        fresh: measure all again, whatever the record holds.
        prune: drop what this run was not asked for.

    Raises:
        Unusable: the file at the path is not a record, or one of another kind.
    """

    def __init__(self, path: Path | None, *, fresh: bool, prune: bool = False) -> None:
        self._path, self._prune = path, prune
        self._began = time.monotonic()
        if path is not None:
            refuse_another_record(path, KIND, KIND_OF_SEVERAL)
        self._there = self._read()
        #: What is known, one report for each environment, profile and seed.
        self.reports: tuple[Report, ...] = () if fresh else self._there

    def refuse_twins(self, things: Iterable[tuple[str, str, Any]]) -> None:
        """Refuse to replace the verdicts of other specs of the same names, unless they are to be dropped.

        Args:
            things: as `gradspec._registry._twins.refuse_twins` takes them.

        Raises:
            TargetError: the record holds another spec of a name.
        """
        if self._path is not None and not self._prune:
            refuse_twins(things, self._there, record=self._path)

    def write(self, report: Report, planned: Collection[Cell] | None = None) -> None:
        """Add a report to the record, if there is a path; what else the record holds stays, but for `prune`.

        Args:
            report: what was measured.
            planned: the cells that there are of its specs and laws, of which others go; None where that is not known.
        """
        if self._path is None:
            return
        from gradspec._engine._reuse import grown

        with only_writer(self._path, lambda said: say(said, err=True)):
            there = self._read(final=True)
            if planned is None:
                planned = {verdict.cell for one in there for verdict in one.verdicts}
            reports = grown(() if self._prune else there, report, planned)
            save(records_to_json(reports), self._path, option="--record")

    def keep(self, report: Report, asked: int, planned: Collection[Cell] | None = None) -> None:
        """Write what an interrupted run has measured, and end.

        Raises:
            Interrupted: something was written.
        """
        if self._path is not None and report.verdicts:
            self._prune = False  # what is not measured yet must not go
            self.write(report, planned)
            count = f"{len(report.verdicts):,} of {asked:,} cells"
            raise Interrupted(f"interrupted: {count} are kept in {self._path}; run it again for the others")

    def said(self, report: Report) -> None:
        """Say on stderr what was measured, and what was known."""
        if self._path is not None:
            every = len(report.verdicts)
            say_what_is_current("cells", every, every - report.reused, self._began)

    def _read(self, *, final: bool = False) -> tuple[Report, ...]:
        """Return what the file holds; in the end one that cannot be read is put aside, and nothing is lost."""
        if self._path is None or not self._path.exists() or is_device(self._path):
            return ()
        try:
            return read_records(self._path)
        except RecordError as error:
            if final:
                aside = put_aside(self._path)
                say(f"{' '.join(str(error).split())}; measured again, and it is kept as {aside}", err=True)
        return ()


def known_in(record: Path | None, reading: Callable[[Path], Recorded], kind: str, *, fresh: bool) -> Recorded | None:
    """Return what a record holds, if there is one and it is asked; say why, if it cannot be used."""
    if record is None:
        return None
    refuse_another_record(record, kind)
    if fresh or not record.exists() or is_device(record):
        return None
    try:
        return reading(record)
    except RecordError as error:
        say(f"{' '.join(str(error).split())}: all is measured again", err=True)
        return None


def say_what_is_current(what: str, every: int, measured: int, began: float) -> None:
    """Say on stderr how much of a record was still valid."""
    took = f"{measured:,} measured in {time.monotonic() - began:.0f} s"
    say(f"{every - measured:,} of {every:,} {what} are current; {took}", err=True)
