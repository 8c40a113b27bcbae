"""One row of a watch: the verdict on a function, and how it travels between processes."""

from __future__ import annotations

import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from gradspec._engine._reuse import merged
from gradspec._scope import Scope
from gradspec._watch._uses import SCOPES, Use
from gradspec.findings import ORDER, Bar, Judged, Judgement, judge
from gradspec.law import Rank, Status
from gradspec.report import Report


@dataclass(frozen=True, kw_only=True)
class Row:
    """One function, in all processes that called it."""

    #: "package.module:Name" of a Function, "namespace::name" of an operator.
    key: str
    package: str
    #: The file and line of its definition; empty where nobody knows.
    where: str = ""
    is_operator: bool = False
    #: How often it was called, and its backward; what runs inside of compiled code is not counted.
    forwards: int = 0
    backwards: int = 0
    #: How often a compiler traced it.
    traced: int = 0
    #: The first backward pass that returned NaN or infinity for finite cotangents; 0 where none is known.
    not_finite: int = 0
    uses: tuple[Use, ...] = ()
    #: The scopes that its audit asks about; empty: training, and what the program uses.
    scopes: tuple[Scope, ...] = ()
    #: The lines of the program that call it.
    lines: tuple[str, ...] = ()
    #: The kinds of calls, each as its first one.
    kinds: tuple[str, ...] = ()
    #: What an audit found, for what the program uses; None where there is none, and why.
    report: Report | None = None
    why: str = ""
    #: The files of the kept calls.
    files: tuple[str, ...] = ()
    #: An earlier record: what it has too does not fail.
    baseline: Report | None = None

    @property
    def is_traced_only(self) -> bool:
        """Whether a compiler alone saw its calls, and nobody their numbers."""
        return bool(self.traced) and not self.forwards

    @property
    def asked_scopes(self) -> tuple[Scope, ...]:
        """The scopes of its audit: those that are named, or training and the features that the program uses."""
        return self.scopes or scopes_of(self.uses)

    @cached_property
    def judgement(self) -> Judgement | None:
        """The judgement of the report for the program."""
        return None if self.report is None else judge(self.report, Bar(scopes=self.asked_scopes), self.baseline)

    @property
    def asked(self) -> list[Judged]:
        """The findings in features that the program uses, the worst first."""
        judged = () if self.judgement is None else self.judgement.findings
        found = [one for one in judged if one.is_asked and not one.is_known]
        return sorted(found, key=_place)

    @property
    def danger(self) -> int:
        """The place of its worst finding among all kinds; behind them what is clean, and then what was not audited."""
        if self.judgement is None:
            return 2 * len(ORDER) + 1
        return min(map(_place, self.asked), default=2 * len(ORDER))

    @property
    def is_wrong(self) -> bool:
        """Whether something that the program uses is wrong."""
        return any(one.fails and isinstance(one.found.rank, Rank) for one in self.asked)

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain data, without its report."""
        plain = ("key", "package", "where", "is_operator", "forwards", "backwards", "traced", "not_finite", "why")
        lists = ("uses", "scopes", "lines", "kinds", "files")
        return {name: getattr(self, name) for name in plain} | {name: list(getattr(self, name)) for name in lists}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], report: Report | None = None) -> Row:
        """Return the row that `to_dict` gave."""
        lists = {name: tuple(data[name]) for name in ("lines", "kinds", "files")}
        lists |= {"uses": tuple(map(Use, data["uses"])), "scopes": tuple(map(Scope, data["scopes"]))}
        return cls(**{**data, **lists}, report=report)


#: Of what fails nothing: whether a gradient is meant comes before what it wastes, and a call that shows little last.
_HARMLESS = (Status.QUESTION, Rank.WASTE, Rank.LIMIT, Status.VACUOUS)


def _place(one: Judged) -> int:
    """Return the place of a finding among all kinds, the most dangerous first."""
    rank = one.found.rank
    if one.fails or rank not in _HARMLESS:
        return ORDER.index(rank)
    return len(ORDER) + _HARMLESS.index(rank)


def scopes_of(uses: Iterable[Use]) -> tuple[Scope, ...]:
    """Return what an audit asks about: training, and what the program uses."""
    used = set(uses)
    return (Scope.TRAINING, *dict.fromkeys(SCOPES[use] for use in Use if use in used and use in SCOPES))


def together(rows: Iterable[Row]) -> list[Row]:
    """Return a row for each function, of those of all processes; the most dangerous first."""
    found: dict[tuple[str, str], Row] = {}
    for row in rows:
        key = (row.key, row.where)
        other = found.get(key)
        found[key] = row if other is None else _both(other, row)
    several = Counter(row.key for row in found.values())
    named = [_told_apart(row) if several[row.key] > 1 else row for row in found.values()]
    return sorted(named, key=lambda row: (not row.is_wrong, row.danger, -row.forwards))


def _told_apart(row: Row) -> Row:
    """Return the row of one of several classes of a name under one of its own: a record keeps the verdicts of each."""
    place, comma, values = row.where.partition(", ")
    name = f"{row.key} ({values if comma else Path(place).name})"
    if row.report is None:
        return replace(row, key=name)
    verdicts = tuple(replace(verdict, spec=name) for verdict in row.report.verdicts)
    sheets = {name if key == row.key else key: sheet for key, sheet in row.report.sheets.items()}
    return replace(row, key=name, report=replace(row.report, verdicts=verdicts, sheets=sheets))


def _both(one: Row, other: Row) -> Row:
    has_report = one if one.report is not None or other.report is None else other
    return replace(
        has_report,
        forwards=one.forwards + other.forwards,
        backwards=one.backwards + other.backwards,
        traced=one.traced + other.traced,
        not_finite=one.not_finite or other.not_finite,
        uses=tuple(use for use in Use if use in (*one.uses, *other.uses)),
        lines=tuple(dict.fromkeys((*one.lines, *other.lines))),
        kinds=tuple(dict.fromkeys((*one.kinds, *other.kinds))),
        files=has_report.files or one.files or other.files,
        why=has_report.why or one.why or other.why,
    )


def _with_files_in(folder: Path | None, row: Row) -> Row:
    if row.report is None:
        if folder is not None:
            _copies(row, [Path(file) for file in row.files], folder)
        return row
    there = dict.fromkeys(file for verdict in row.report.verdicts if (file := _file_in(verdict.rerun)))
    copies = {} if folder is None else _copies(row, list(map(Path, there)), folder)
    verdicts = []
    for verdict in row.report.verdicts:
        file = _file_in(verdict.rerun)
        rerun = verdict.rerun.replace(f"@{file}", f"@{copies[Path(file)]}") if file and copies else ""
        verdicts.append(replace(verdict, rerun=rerun))
    return replace(row, report=replace(row.report, verdicts=tuple(verdicts)))


def _file_in(command: str) -> str:
    """Return the file of the call that a command reads; empty if it reads none."""
    return next((word[1:] for word in shlex.split(command) if word.startswith("@")), "")


def _copies(row: Row, files: list[Path], folder: Path) -> dict[Path, Path]:
    """Copy the files of a function's calls under names that say what they are; return the copies."""
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^\w.-]+", ".", row.key.removesuffix(".py").replace(".py:", ".")).strip(".")
    copies = {file: folder / f"{name}-{number}.safetensors" for number, file in enumerate(files, 1)}
    for file, copy in copies.items():
        shutil.copyfile(file, copy)
    return copies


@dataclass(frozen=True, kw_only=True)
class Program:
    """The results of watching a program."""

    rows: tuple[Row, ...]
    #: How many processes were watched, and how many of them called a function that is asked about.
    processes: int = 1
    callers: int = 1
    #: The packages of the functions that ran and that nobody asked about, one for each function.
    others: tuple[str, ...] = ()
    #: What went wrong in the watch itself.
    troubles: tuple[str, ...] = ()

    @property
    def is_wrong(self) -> bool:
        """Whether a gradient is wrong in what the program uses."""
        return any(row.is_wrong for row in self.rows)

    @property
    def is_unjudged(self) -> bool:
        """Whether custom gradients ran, and none of them was audited."""
        return bool(self.rows) and all(row.report is None for row in self.rows)

    def with_files_in(self, folder: Path | None) -> Program:
        """Return the same with the audited calls copied to a folder; without one no command reads them again."""
        return replace(self, rows=tuple(_with_files_in(folder, row) for row in self.rows))

    @property
    def judgement(self) -> Judgement | None:
        """The judgement of all audits together, each function in the features that the program uses."""
        judged = [row.judgement for row in self.rows if row.judgement is not None]
        if not judged:
            return None
        report = judged[0].report
        for one in judged[1:]:
            report = merged(report, one.report)
        # A reader of the record asks about all that any of them was asked about.
        scopes = [scope for scope in Scope if any(scope in row.asked_scopes for row in self.rows)]
        profile = {**report.provenance["profile"], "scopes": scopes}
        return replace(
            judged[0],
            report=replace(report, provenance={**report.provenance, "profile": profile}),
            findings=tuple(found for one in judged for found in one.findings),
            mended=tuple(verdict for one in judged for verdict in one.mended),
        )

    def __str__(self) -> str:
        from gradspec._watch._text import text

        return text(self)
