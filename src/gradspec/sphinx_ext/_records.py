"""The records of a build, read once: those made for it, and those that were committed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradspec.report import RecordError, Report, Source, kind_of_sheet, read_record
from gradspec.source import package_root
from gradspec.sphinx_ext._staleness import changed_sources


@dataclass(frozen=True, kw_only=True)
class Record:
    """A report on disk, and which of its sources have changed since."""

    path: Path
    report: Report
    #: "spec NAME" and "law NAME".
    changed: frozenset[str]

    @property
    def date(self) -> str:
        """The day on which it was made."""
        return str(self.report.provenance.get("date", "an unknown date"))[:10]

    def is_stale(self, spec: str, law: str) -> bool:
        """Whether a verdict of this record is about an older source."""
        return f"spec {spec}" in self.changed or f"law {law}" in self.changed


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

    def of_spec(self, name: str) -> Record | None:
        """Return the record of this build that holds a spec."""
        return next((record for record in self.build if name in record.report.sheets), None)

    def kind_of(self, spec: str) -> str:
        """Return the kind of a spec of this build."""
        record = self.of_spec(spec)
        return kind_of_sheet(record.report.sheets[spec] if record else {})

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


def read_records(
    folder: Path, build: tuple[str, ...], committed: tuple[str, ...], seen: MutableMapping[str, str]
) -> Records:
    """Read the records.

    Args:
        folder: where relative paths start.
        build: the paths of `gradspec_records`.
        committed: the paths of `gradspec_committed_records`; one that does not exist is no error.
        seen: what the files of each source looked like, as `changed_sources` takes it.
    """
    errors: list[str] = []

    def read(names: tuple[str, ...], *, required: bool) -> Iterator[Record]:
        for path in ((folder / name).resolve() for name in names):
            if not path.exists() and not required:
                continue
            if not path.exists():
                errors.append(f"there is no record {path}: make it with `gradspec check TARGET --record {path}`")
                continue
            try:
                report = read_record(path)
            except RecordError as error:
                errors.append(str(error))
            else:
                yield Record(path=path, report=report, changed=changed_sources(report, seen))

    return Records(
        build=tuple(read(build, required=True)),
        committed=tuple(read(committed, required=False)),
        errors=tuple(errors),
        paths=tuple((folder / name).resolve() for name in (*build, *committed)),
    )


def source_files(source: Source) -> Iterator[str]:
    """Yield the absolute paths of the files that a measurement stands on."""
    root = package_root(source.package) if source.package else None
    for name in source.files:
        yield str(root / name if root else name)
