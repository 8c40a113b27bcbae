"""The records of a build, read once: those made for it, and those that were committed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from gradspec._record import stands_on
from gradspec.report import RecordError, Report, kind_of_sheet
from gradspec.report import read_records as reports_in
from gradspec.sphinx_ext.domain._staleness import Today


@dataclass(frozen=True, kw_only=True)
class Record:
    """A report on disk, and which of its sources have changed since."""

    path: Path
    report: Report
    #: By "spec NAME" and "law NAME".
    changed: frozenset[str]
    #: The files that each spec depends on.
    files: Mapping[str, list[str]] = field(default_factory=dict)
    #: The modules and files at which a changed source begins and that are nowhere, by its name.
    missing: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def date(self) -> str:
        """The day on which it was made."""
        return str(self.report.provenance.get("date", "an unknown date"))[:10]

    def is_stale(self, spec: str, law: str) -> bool:
        """Whether a verdict of this record is about an older source."""
        sheet = self.report.laws.get(law, {})
        found = self._statuses.get((spec, law), {""})
        return any(not self.changed.isdisjoint(stands_on(spec, law, sheet, status)) for status in found)

    def judges(self, law: str, spec: str) -> bool:
        """Whether a law that judges specs of its kind has anything to judge of this one.

        A law over wrong calls or documents has not if the spec declares none.
        """
        if self.report.laws.get(law, {}).get("over", "cases") == "cases" or (spec, law) in self._statuses:
            return True
        return any((spec, law) == (missed, of) for missed, of, _ in self.report.missing)

    @cached_property
    def _statuses(self) -> dict[tuple[str, str], set[str]]:
        found: dict[tuple[str, str], set[str]] = {}
        for verdict in self.report.verdicts:
            found.setdefault((verdict.spec, verdict.law), set()).add(str(verdict.status))
        return found


@dataclass(frozen=True, kw_only=True)
class Records:
    """Every record of a build."""

    #: Made for this build, in the order of `gradspec_records`.
    build: tuple[Record, ...] = ()
    #: From `gradspec_committed_records`.
    committed: tuple[Record, ...] = ()
    #: Why a record of either kind could not be read, a line each.
    errors: tuple[str, ...] = ()
    #: Where the records are, or should be.
    paths: tuple[Path, ...] = ()
    #: By folder: the records of one share what is parsed for them.
    _todays: dict[Path, Today] = field(default_factory=dict)

    def today(self, path: Path) -> Today:
        """Return the sources of today, for the record at a path."""
        folder = path.resolve().parent
        if folder not in self._todays:
            self._todays[folder] = Today((folder, *folder.parents))
        return self._todays[folder]

    def of_spec(self, name: str) -> Record | None:
        """Return the record of this build that holds a spec."""
        return next((record for record in self.build if name in record.report.sheets), None)

    def kind_of(self, spec: str) -> str:
        """Return the kind of a spec of this build."""
        return kind_of_sheet(self.sheet(spec))

    def sheet(self, spec: str) -> Mapping[str, Any]:
        """Return what a spec of this build says as plain data; nothing if no record holds it."""
        record = self.of_spec(spec)
        return record.report.sheets[spec] if record else {}

    def of_law(self, name: str) -> Mapping[str, Any] | None:
        """Return the sheet of a law, from the first record that holds it."""
        return next((r.report.laws[name] for r in (*self.build, *self.committed) if name in r.report.laws), None)

    @property
    def specs(self) -> Iterator[str]:
        """The specs of this build, in the order of the records."""
        return iter(dict.fromkeys(name for record in self.build for name in record.report.sheets))

    @property
    def laws(self) -> Mapping[str, Mapping[str, Any]]:
        """The laws of this build, in the order in which they ran."""
        return {name: law for record in reversed(self.build) for name, law in record.report.laws.items()}


def by_family(laws: Mapping[str, Mapping[str, Any]]) -> Mapping[str, list[str]]:
    """Return the names of laws by family, in the order in which these first run."""
    found: dict[str, list[str]] = {}
    for name, law in laws.items():
        found.setdefault(str(law["family"]), []).append(name)
    return found


def read_records(folder: Path, build: tuple[str, ...], committed: tuple[str, ...]) -> Records:
    """Read the records.

    Args:
        folder: where relative paths start.
        build: the paths of `gradspec_records`.
        committed: the paths of `gradspec_committed_records`; one that does not exist is not an error.
    """
    errors: list[str] = []
    found = Records()

    def read(names: tuple[str, ...], *, required: bool) -> Iterator[Record]:
        for path in ((folder / name).resolve() for name in names):
            if not path.exists() and not required:
                continue
            if not path.exists():
                errors.append(f"there is no record {path}: make it with `gradspec check TARGET --record {path}`")
                continue
            try:
                reports = reports_in(path)
            except RecordError as error:
                errors.append(str(error))
                continue
            today = found.today(path)
            for report in reports:
                if report.incomplete:
                    errors.append(f"{path}: {report.incomplete}")
                files = {name: today.files(source) for name, source in report.sources.items() if name[:5] == "spec "}
                changed = today.changed(report.sources)
                missing = {name: roots for name in changed if (roots := today.missing(report.sources[name]))}
                yield Record(path=path, report=report, changed=changed, files=files, missing=missing)

    return replace(
        found,
        build=tuple(read(build, required=True)),
        committed=tuple(read(committed, required=False)),
        errors=tuple(errors),
        paths=tuple((folder / name).resolve() for name in (*build, *committed)),
    )
