"""The record of a run on disk: what of it is still valid, and how the new one is written."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gradspec._record import RecordError, is_unchanged, only_writer, same_environment
from gradspec._record._provenance import environment
from gradspec.cli._shared import Interrupted, refuse_another_record, save
from gradspec.report import KIND, KIND_OF_SEVERAL, Report, read_record

if TYPE_CHECKING:
    from gradspec.profile import Profile


Recorded = TypeVar("Recorded")


class Kept:
    """The record at a path, if there is one and it can be read.

    Args:
        path: where the record is, or will be; None: there is none.
        fresh: measure all anew, whatever the record holds.
        partly: a part of the specs is run: what the record holds beside it stays.

    Raises:
        Unusable: the file at the path is not a record, or one of another kind.
    """

    def __init__(self, path: Path | None, *, fresh: bool, partly: bool = False) -> None:
        self._path, self._partly, self._fresh = path, partly, fresh
        self._began = time.monotonic()
        #: Why the record cannot be used, in one line.
        self._trouble = ""
        if path is not None:
            refuse_another_record(path, KIND, KIND_OF_SEVERAL)
        self.report = None if fresh else self._read()

    @property
    def has_path(self) -> bool:
        """Whether a record is to be written."""
        return self._path is not None

    def unchanged(self, request: Mapping[str, Any], profile: Profile) -> Report | None:
        """Return the record if it answers a request, and nothing has changed since, without importing torch."""
        known = self.report
        if known is None or profile.device != "cpu" or not same_environment(known.provenance, environment()):
            return None
        if any(verdict.finding.is_cut_off for verdict in known.verdicts):
            return None
        return known if is_unchanged(known.request, request) else None

    def write(self, report: Report) -> None:
        """Write a report together with the kept part of the record, if there is a path."""
        if self._path is None:
            return
        from gradspec._engine._reuse import merged

        with only_writer(self._path):
            there = self._read() if self._partly and not self._fresh else None
            save((merged(there, report) if there else report).to_json(), self._path, option="--record")

    def keep(self, report: Report, asked: int) -> None:
        """Write what an interrupted run has measured, and end.

        Raises:
            Interrupted: something was written.
        """
        if self._path is not None and report.verdicts:
            self.write(report)
            count = f"{len(report.verdicts):,} of {asked:,} cells"
            raise Interrupted(f"interrupted: {count} are kept in {self._path}; run it again for the others")

    def said(self, report: Report) -> None:
        """Say on stderr what was measured, and what still stood."""
        if self._trouble:
            click.echo(f"{self._trouble}: all was measured again", err=True)
        if self._path is not None:
            every = len(report.verdicts)
            say_what_is_current("cells", every, every - report.reused, self._began)

    def _read(self) -> Report | None:
        if self._path is None or not self._path.exists():
            return None
        try:
            return read_record(self._path)
        except RecordError as error:
            self._trouble = " ".join(str(error).split())
        return None


def known_in(record: Path | None, reading: Callable[[Path], Recorded], kind: str, *, fresh: bool) -> Recorded | None:
    """Return what a record holds, if there is one and it is asked; say why, if it cannot be used."""
    if record is None:
        return None
    refuse_another_record(record, kind)
    if fresh or not record.exists():
        return None
    try:
        return reading(record)
    except RecordError as error:
        click.echo(f"{' '.join(str(error).split())}: all is measured again", err=True)
        return None


def say_what_is_current(what: str, every: int, measured: int, began: float) -> None:
    """Say on stderr how much of a record still stood."""
    took = f"{measured:,} measured in {time.monotonic() - began:.0f} s"
    click.echo(f"{every - measured:,} of {every:,} {what} are current; {took}", err=True)


def request_of(profile: Profile, seed: int, **asked: Any) -> dict[str, Any]:
    """Return the request of a command, as a record notes it."""
    facts = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(profile).items()}
    return {**asked, "seed": seed, "profile": facts}
