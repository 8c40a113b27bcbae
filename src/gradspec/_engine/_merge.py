"""Records of shards, versions, devices and machines as one: what agrees is joined, what disagrees is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradspec._engine._reuse import joint_profile
from gradspec._engine._vacuous import settled, unsettled
from gradspec._record import Cell, reusable
from gradspec._record._provenance import ENVIRONMENT
from gradspec.findings import rank_of
from gradspec.law import Status, Verdict
from gradspec.render import words
from gradspec.report import Report

#: How many cells a refusal names.
SHOWN = 5


class MergeError(ValueError):
    """Records that do not go together; the message is one line for the user."""


@dataclass(frozen=True, kw_only=True)
class Merged:
    """Several records, merged."""

    #: One for each environment and profile, in the order in which they were given.
    reports: tuple[Report, ...]
    #: What a reader should know of how they were joined, each in a line.
    notes: tuple[str, ...]


def merge(named: Sequence[tuple[str, Report]]) -> Merged:
    """Join records: those of one environment cell by cell, those of several side by side.

    Args:
        named: each with the name by which a message calls it, its path.

    Raises:
        MergeError: they are of different sources, or of one environment and say two things of one cell.
    """
    _refuse_other_sources(named)
    groups: list[list[tuple[str, Report]]] = []
    for name, report in named:
        mine = next((g for g in groups if reusable(g[0][1].provenance, report.provenance)), None)
        if mine is None:
            groups.append(mine := [])
        mine.append((name, report))
    joined = [_joined(group) for group in groups]
    notes = tuple(note for _, said in joined for note in said)
    return Merged(reports=tuple(report for report, _ in joined), notes=notes)


def labels(reports: Sequence[Report]) -> list[str]:
    """Return what tells reports apart, in words: the version of torch, the device, or else the profile and the seed."""
    facts = [_facts(report.provenance) for report in reports]
    differ = [name for name in facts[0] if len({str(fact[name]) for fact in facts}) > 1] or ["torch", "device"]
    return [", ".join(f"{name} {fact[name]}" for name in differ) for fact in facts]


def differing(reports: Sequence[Report]) -> dict[Cell, list[Status | None]]:
    """Return the cells in which reports differ, with the verdict of each; None for a report without the cell."""
    said = [{v.cell: v.status for v in report.verdicts} for report in reports]
    cells = dict.fromkeys(cell for one in said for cell in one)
    return {cell: found for cell in cells if len(set(found := [one.get(cell) for one in said]) - {None}) > 1}


def _facts(provenance: Mapping[str, Any]) -> dict[str, Any]:
    profile = provenance.get("profile") or {}
    return {name: provenance.get(name) for name in ENVIRONMENT} | {
        "profile": profile.get("name"),
        "seed": provenance.get("seed"),
    }


def _refuse_other_sources(named: Sequence[tuple[str, Report]]) -> None:
    first: dict[str, tuple[str, str]] = {}
    for name, report in named:
        for what, source in report.sources.items():
            before = first.setdefault(what, (name, source.key))
            if source.key != before[1]:
                raise MergeError(
                    f"{before[0]} and {name} were measured of different sources ({what}): measure both of one commit"
                )


def _joined(group: Sequence[tuple[str, Report]]) -> tuple[Report, list[str]]:
    found: dict[Cell, tuple[str, Verdict]] = {}
    conflicts, notes = list[str](), list[str]()
    for name, report in group:
        for verdict in map(unsettled, report.verdicts):
            cell = verdict.cell
            before = found.setdefault(cell, (name, verdict))
            if _says(before[1]) == _says(verdict):
                continue
            where = f"{' · '.join(cell)} {_in_words(before[1])} in {before[0]}, {_in_words(verdict)} in {name}"
            slow = [one for one in (before, (name, verdict)) if one[1].finding.is_cut_off]
            if len(slow) == 1:  # a limit ran out: a machine that had an answer is right
                found[cell] = before if slow[0] is not before else (name, verdict)
                notes.append(f"conflict: {where}: the answer that came is kept")
            else:
                conflicts.append(where)
    if conflicts:
        more = f" and {len(conflicts) - SHOWN} more" if len(conflicts) > SHOWN else ""
        raise MergeError(f"the records disagree: {'; '.join(conflicts[:SHOWN])}{more}")
    reports = [report for _, report in group]
    return _one(reports, [verdict for _, verdict in found.values()]), notes


def _one(reports: Sequence[Report], verdicts: Iterable[Verdict]) -> Report:
    """Return one report of verdicts of several, of one environment; it is as old as the oldest."""
    sheets = {name: sheet for report in reports for name, sheet in report.sheets.items()}
    laws = {name: law for report in reports for name, law in report.laws.items()}
    places = ({name: place for place, name in enumerate(table)} for table in (sheets, laws))
    of_spec, of_law = places
    verdicts = tuple(verdicts)
    there = {v.cell for v in verdicts}
    oldest = min(reports, key=lambda report: str(report.provenance.get("date", "")))
    profile = joint_profile([report.provenance.get("profile") or {} for report in reversed(reports)])
    return replace(
        oldest,
        provenance={**oldest.provenance, "profile": profile},
        sheets=sheets,
        laws=laws,
        sources={name: source for report in reports for name, source in report.sources.items()},
        verdicts=tuple(sorted(settled(verdicts), key=lambda v: (of_spec[v.spec], of_law[v.law]))),
        missing=tuple(dict.fromkeys(cell for report in reports for cell in report.missing if cell not in there)),
        older=tuple(dict.fromkeys(cell for report in reports for cell in report.older)),
    )


def _says(verdict: Verdict) -> tuple[Status, str]:
    return verdict.status, str(rank_of(verdict))


def _in_words(verdict: Verdict) -> str:
    return words(verdict.status) if verdict.status is Status.HOLDS else f"is {words(verdict.status)}"
