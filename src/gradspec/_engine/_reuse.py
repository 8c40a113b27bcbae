"""Which verdicts of an earlier report are still valid, and how two reports become one record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from gradspec._engine._plan import Check
from gradspec._engine._vacuous import settled
from gradspec._record import Cell, cell_key, laws_behind, reusable
from gradspec._record._cells import how_hard
from gradspec.law import Status, Verdict
from gradspec.report import Report, kind_of_sheet


def current(known: Report, today: Report, checks: Sequence[Check]) -> dict[Cell, Verdict]:
    """Return the verdicts of an earlier report that need not be measured again, by cell.

    Args:
        known: the earlier report.
        today: a report of today's sources, without verdicts.
        checks: what is asked for.
    """
    if not reusable(known.provenance, today.provenance):
        return {}
    was, now = keys_of(known), keys_of(today)
    asked = {check.cell for check in checks}
    found = {(v.spec, v.law, v.case): v for v in known.verdicts}
    return {
        cell: verdict
        for cell, verdict in found.items()
        if cell in asked
        and (key := now(cell, verdict.status))
        and key == was(cell, verdict.status)
        and not (_depends_on_the_machine(verdict) or _depends_on_another(verdict, found, today))
    }


def made_when(known: Report | None, today: Mapping[str, Any], *, reused: int, measured: int) -> dict[str, Any]:
    """Return the provenance of a report with earlier parts, and the date of the oldest part."""
    if known is None or not reused:
        return dict(today)
    before = {name: known.provenance[name] for name in ("date", "commit") if name in known.provenance}
    if not measured:
        return {**today, **known.provenance}
    return {**today, "reused from": known.provenance.get("reused from", before.get("date", "an unknown date"))}


def keys_of(report: Report) -> Callable[[Cell, str], str]:
    """Return what gives the key of a cell in which a law says something, from the sources of a report."""
    how = how_hard(report.provenance)

    @cache
    def key(cell: Cell, status: str) -> str:
        spec, law, _ = cell
        if spec not in report.sheets or law not in report.laws:
            return ""
        kind = kind_of_sheet(report.sheets[spec])
        return cell_key(cell, kind, report.laws[law], report.sources, how, status=status)

    return key


def merged(known: Report, new: Report) -> Report:
    """Return a new report with what an earlier one holds beside it and what is still current; of a part of a run.

    The specs and laws keep the order of the earlier report, and those that only the new one has come behind.
    """
    if not reusable(known.provenance, new.provenance):
        return new
    sources = {**known.sources, **new.sources}
    both = replace(new, sheets={**known.sheets, **new.sheets}, laws={**known.laws, **new.laws}, sources=sources)
    was, now = keys_of(known), keys_of(both)
    kept = {(v.spec, v.law, v.case): v for v in known.verdicts}
    kept = {cell: v for cell, v in kept.items() if (key := was(cell, v.status)) and key == now(cell, v.status)}
    verdicts = kept | {(v.spec, v.law, v.case): v for v in new.verdicts}
    verdicts = {cell: v for cell, v in verdicts.items() if not _depends_on_another(v, verdicts, both)}
    specs = {name: place for place, name in enumerate(both.sheets)}
    laws = {name: place for place, name in enumerate(both.laws)}
    ordered = sorted(settled(verdicts.values()), key=lambda v: (specs[v.spec], laws[v.law]))
    held = {v.spec: kind_of_sheet(both.sheets[v.spec]) for v in ordered}
    behind = {f"spec {spec}" for spec in held} | {f"harness {kind}" for kind in held.values()}
    behind |= {source for name, law in both.laws.items() for source in laws_behind(name, law, Status.BROKEN)}
    request = known.request if known.request == new.request else {}
    return replace(
        both,
        request=request,
        sources={name: source for name, source in sources.items() if name in behind or name in new.sources},
        sheets={name: sheet for name, sheet in both.sheets.items() if name in held},
        verdicts=tuple(ordered),
    )


def _depends_on_another(verdict: Verdict, known: Mapping[Cell, Verdict], report: Report) -> bool:
    """Whether a law that this one requires gave no verdict: what it then says depends on which laws were asked."""
    required = report.laws[verdict.law]["requires"] if verdict.law in report.laws else ()
    found = (known.get((verdict.spec, law, verdict.case)) for law in required)
    return any(other is not None and (other.status is Status.ERROR or other.finding.is_cut_off) for other in found)


def _depends_on_the_machine(verdict: Verdict) -> bool:
    """Whether a slower or faster machine may give another verdict: its limit ran out."""
    return verdict.finding.is_cut_off
