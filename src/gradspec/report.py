"""The report of a run, as plain data: every frontend renders it, and a record is a report on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from gradspec._one_line import name_of, visible_data
from gradspec._outcome import Outcome
from gradspec._record import SCHEMA, Cell, RecordError, Source, cells_in, from_text, read, to_text, what_lacks, write
from gradspec._record import write_experiment as write_experiment
from gradspec._scope import Scope, scopes_of
from gradspec.law import ALL_KINDS, Rank, Verdict, verdict_from_dict, verdict_to_dict

__all__ = [
    "SCHEMA",
    "RecordError",
    "Report",
    "Source",
    "judges",
    "kind_of_sheet",
    "read_record",
    "read_records",
    "records_to_json",
    "write_experiment",
    "write_record",
]

KIND = "report"
#: Several of them, of one environment each.
KIND_OF_SEVERAL = "reports"
AGAIN = "make it again with `gradspec check --record`"


@dataclass(frozen=True, kw_only=True)
class Report(Outcome):
    """The verdicts of one run, with all that is needed to judge and to render them."""

    #: Date, commit, versions, device, seed and profile.
    provenance: Mapping[str, Any]
    #: What each spec says of itself, by name, as plain data (see `gradspec.spec._sheet`).
    sheets: Mapping[str, Mapping[str, Any]]
    #: What each law says of itself, by name: family, statement, doc, cost.
    laws: Mapping[str, Mapping[str, Any]]
    #: What each spec and law depends on, by "spec NAME" and "law NAME".
    sources: Mapping[str, Source]
    verdicts: tuple[Verdict, ...] = field(default=())
    #: Cells that were asked for and not measured: of an interrupted run, or of other shards.
    missing: tuple[Cell, ...] = ()
    #: Cells whose verdicts are of an older source than `sources` says.
    older: tuple[Cell, ...] = ()
    #: How many of the verdicts are from an earlier run; not part of the record.
    reused: int = field(default=0, compare=False)

    @cached_property
    def failures(self) -> tuple[Verdict, ...]:
        """The verdicts that make the run fail, as `gradspec check` judges unless told otherwise."""
        from gradspec.findings import judge

        return judge(self).failures

    @property
    def violations(self) -> tuple[Verdict, ...]:
        """Violations of any rank and in any scope, what could not be judged, and questions."""
        return tuple(v for v in self.verdicts if v.finding.is_told)

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes that the profile of the run names; empty if what each spec promises was asked about."""
        profile = self.provenance.get("profile")
        return scopes_of(profile.get("scopes", ())) if isinstance(profile, Mapping) else ()

    @property
    def incomplete(self) -> str:
        """The missing part of the run, in a sentence; empty if nothing does."""
        return what_lacks(self.missing, self.older)

    def of(self, *, spec: str | None = None, law: str | None = None, case: str | None = None) -> tuple[Verdict, ...]:
        """Return the verdicts of a spec, a law, a case, or any combination."""
        found = self.verdicts if spec is None and law is None else self._index.get((spec, law), ())
        return tuple(found if case is None else (verdict for verdict in found if verdict.case == case))

    @cached_property
    def _index(self) -> Mapping[tuple[str | None, str | None], list[Verdict]]:
        """The verdicts by spec, by law and by both: a page asks thousands of times."""
        found: dict[tuple[str | None, str | None], list[Verdict]] = {}
        for verdict in self.verdicts:
            for key in ((verdict.spec, verdict.law), (verdict.spec, None), (None, verdict.law)):
                found.setdefault(key, []).append(verdict)
        return found

    def to_json(self) -> str:
        """Return the report as JSON, keys in a fixed order.

        Raises:
            UnicodeEncodeError: a name in it is not valid Unicode.
        """
        return to_text(KIND, _content(self))

    @classmethod
    def from_json(cls, text: str, *, where: str = "the record") -> Report:
        """Return the report that `text` holds.

        Args:
            text: what `to_json` returned.
            where: how a message names it: its path.

        Raises:
            RecordError: not JSON, another schema version, edited since, or a field that is missing.
        """
        return _report(from_text(text, KIND, where=where, again=AGAIN), where)


def _content(report: Report) -> dict[str, Any]:
    content = {
        "provenance": dict(report.provenance),
        "missing": [list(cell) for cell in report.missing],
        "older": [list(cell) for cell in report.older],
        "sheets": {name: dict(sheet) for name, sheet in report.sheets.items()},
        "laws": {name: dict(law) for name, law in report.laws.items()},
        "sources": {name: source.to_dict() for name, source in report.sources.items()},
        "verdicts": [verdict_to_dict(verdict) for verdict in report.verdicts],
    }
    return {key: visible_data(value) for key, value in content.items()}


def _report(data: Mapping[str, Any], where: str) -> Report:
    try:
        _check_shape(data)
        return Report(
            provenance=visible_data(data["provenance"]),
            sheets=_named(data["sheets"]),
            laws=_named(data["laws"]),
            sources={name: Source.from_dict(source) for name, source in data["sources"].items()},
            verdicts=tuple(verdict_from_dict(v) for v in data["verdicts"]),
            missing=cells_in(data, "missing"),
            older=cells_in(data, "older"),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(
            f"{where} is not a record of schema {SCHEMA} ({type(error).__name__}: {error}): {AGAIN}"
        ) from None


def _named(sheets: Mapping[str, Any]) -> dict[str, Any]:
    return {name_of(name): visible_data(sheet) for name, sheet in sheets.items()}


def _check_shape(data: Mapping[str, Any]) -> None:
    """Refuse what a reader would stumble over later."""
    for key in ("provenance", "sheets", "laws", "sources"):
        if not isinstance(data[key], dict):
            raise TypeError(f"{key} is not an object")
    for key in ("sheets", "laws", "sources"):
        if not all(isinstance(value, dict) for value in data[key].values()):
            raise TypeError(f"{key} holds something other than an object")
    for verdict in data["verdicts"]:
        for key, value in verdict.items():
            if not isinstance(value, dict if key in ("details", "reason") else str):
                raise TypeError(f"the field {key} of a verdict is {value!r}")
        if verdict.get("rank"):
            Rank(verdict["rank"])
    for law in data["laws"].values():
        Scope(law.get("scope", Scope.TRAINING))
    if isinstance(profile := data["provenance"].get("profile"), dict) and profile.get("scopes"):
        scopes_of(profile["scopes"])


def kind_of_sheet(sheet: Mapping[str, Any]) -> str:
    """Return the kind of a spec, from its sheet; a record that is older than the kinds holds functions."""
    return str(sheet.get("kind", "function"))


def judges(law: Mapping[str, Any], kind: str) -> bool:
    """Return whether a law judges specs of a kind, from its sheet; before there were kinds all judged functions."""
    kinds = tuple(law.get("kinds", ("function",)))
    return kinds == ALL_KINDS or kind in kinds


def read_record(path: Path) -> Report:
    """Return the report that a file holds.

    Raises:
        RecordError: the file cannot be read, or does not hold a record of this version.
    """
    return _report(read(path, KIND, again=AGAIN), str(path))


def read_records(path: Path) -> tuple[Report, ...]:
    """Return the reports that a file holds: one, or one for each environment where `gradspec merge` put several.

    Raises:
        RecordError: as `read_record`.
    """
    data = read(path, KIND, KIND_OF_SEVERAL, again=AGAIN)
    reports = [data] if data["kind"] == KIND else data.get("reports")
    if not isinstance(reports, list) or not all(isinstance(one, dict) for one in reports):
        raise RecordError(f"{path} holds no list of reports: {AGAIN}")
    return tuple(_report(one, str(path)) for one in reports)


def records_to_json(reports: Sequence[Report]) -> str:
    """Return what `read_records` reads: a single report as its own JSON, several in one record.

    Raises:
        UnicodeEncodeError: a name in them is not valid Unicode.
    """
    several = {"reports": [_content(report) for report in reports]}
    return reports[0].to_json() if len(reports) == 1 else to_text(KIND_OF_SEVERAL, several)


def write_record(report: Report, path: Path) -> None:
    """Write a report to a file, all or nothing: a reader sees the old record or the new one."""
    write(report.to_json(), path)
