"""Which verdicts of an earlier report are still valid, and how two reports become one record."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from gradspec._engine._plan import Check
from gradspec._engine._vacuous import settled
from gradspec._record import Cell, cell_key, reusable
from gradspec._record._cells import how_hard
from gradspec.law import Status, Verdict
from gradspec.report import Report


def known_of(known: Report | Sequence[Report] | None, today: Report) -> Report | None:
    """Return that of some earlier reports which is of the environment, profile and seed of today's, if there is one."""
    reports = (known,) if isinstance(known, Report) else known or ()
    return next((report for report in reports if reusable(report.provenance, today.provenance)), None)


def current(known: Report, today: Report, checks: Sequence[Check]) -> dict[Cell, Verdict]:
    """Return the verdicts of an earlier report that need not be measured again, by cell.

    Args:
        known: the earlier report.
        today: a report of today's sources, without verdicts.
        checks: what is asked for.
    """
    same = [facts.get("dependencies") for facts in (known.provenance, today.provenance)]
    if not reusable(known.provenance, today.provenance) or same[0] != same[1]:
        return {}
    was, now = keys_of(known), keys_of(today)
    asked, older = {check.cell for check in checks}, set(known.older)
    found = {v.cell: v for v in known.verdicts}
    return {
        cell: verdict
        for cell, verdict in found.items()
        if cell in asked
        and cell not in older
        and (key := now(cell, verdict.status))
        and key == was(cell, verdict.status)
        and not (_depends_on_the_machine(verdict) or _depends_on_another(verdict, found, today))
    }


def made_when(known: Report | None, today: Mapping[str, Any], *, reused: int, measured: int) -> dict[str, Any]:
    """Return the provenance of a report with earlier parts, and the date of the oldest part."""
    if known is None or not reused:
        return dict(today)
    before = {name: known.provenance[name] for name in ("date", "commit") if name in known.provenance}
    if not measured:  # how hard it looked is the same, and what it asked for is today's
        return {**today, **known.provenance, **({"profile": today["profile"]} if "profile" in today else {})}
    return {**today, "reused from": known.provenance.get("reused from", before.get("date", "an unknown date"))}


def keys_of(report: Report) -> Callable[[Cell, str], str]:
    """Return what gives the key of a cell in which a law says something, from the sources of a report."""
    how = how_hard(report.provenance)

    @cache
    def key(cell: Cell, status: str) -> str:
        spec, law, _ = cell
        if spec not in report.sheets or law not in report.laws:
            return ""
        return cell_key(cell, report.laws[law], report.sources, how, status=status)

    return key


def merged(known: Report, new: Report, planned: Collection[Cell] = ()) -> Report:
    """Return a new report and, beside it, all that an earlier one holds; both are of one environment, profile and seed.

    A cell of the earlier one that is not of today's source stays, and is noted as older; one of a case that its spec no
    longer has goes, since nothing could measure it again. The specs and laws keep the order of the earlier report, and
    those that only the new one has come after these.

    Args:
        known: the earlier report.
        new: a report of today.
        planned: the cells that there are of the specs and laws of the new one, where it is only a part of these.
    """
    profiles = [facts.get("profile") for facts in (known.provenance, new.provenance)]
    how = {"profile": joint_profile(profiles)} if all(profiles) else {}  # type: ignore[arg-type]  # both are there
    both = replace(
        new,
        provenance={**new.provenance, **how},
        sheets={**known.sheets, **new.sheets},
        laws={**known.laws, **new.laws},
        sources={**known.sources, **new.sources},
    )
    was, now = keys_of(known), keys_of(both)
    measured = {v.cell for v in new.verdicts}
    there = measured | set(new.missing) | set(planned)
    looked_at = {cell[:2] for cell in there}

    def is_there(cell: Cell) -> bool:
        return cell in there or cell[:2] not in looked_at

    kept = {cell: v for v in known.verdicts if (cell := v.cell) not in measured and is_there(cell)}
    verdicts = kept | {v.cell: v for v in new.verdicts}
    older = {cell for cell in (*known.older, *new.older) if cell in kept}
    older |= {cell for cell, v in kept.items() if was(cell, v.status) != now(cell, v.status)}
    older |= {cell for cell, v in kept.items() if _depends_on_another(v, verdicts, both)}
    missing = dict.fromkeys(c for c in (*known.missing, *new.missing) if c not in verdicts and is_there(c))
    specs = {name: place for place, name in enumerate(both.sheets)}
    laws = {name: place for place, name in enumerate(both.laws)}
    ordered = sorted(settled(verdicts.values()), key=lambda v: (specs[v.spec], laws[v.law]))
    return replace(
        both,
        verdicts=tuple(ordered),
        missing=tuple(missing),
        older=tuple(cell for v in ordered if (cell := v.cell) in older),
    )


def grown(reports: Sequence[Report], new: Report, planned: Collection[Cell] = ()) -> tuple[Report, ...]:
    """Return the reports of a record with a new one: joined to that of its environment, profile and seed, or beside.

    Arguments as for `merged`.
    """
    mine = next((number for number, one in enumerate(reports) if reusable(one.provenance, new.provenance)), None)
    if mine is None:
        return (*reports, replace(new, verdicts=settled(new.verdicts)))
    return tuple(merged(one, new, planned) if number == mine else one for number, one in enumerate(reports))


def joint_profile(profiles: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the profile of a report that several runs made, that of the last one first of all.

    Where these ran different laws it names none, and where they asked for different scopes it names those of all of
    them: none if one of them asked for what each spec promises.
    """
    *_, last = profiles
    if all(one == last for one in profiles):
        return dict(last)
    asked = [one.get("scopes") or () for one in profiles]
    scopes = list(dict.fromkeys(scope for few in asked for scope in few)) if all(asked) else []
    return {**last, "laws": [], "scopes": scopes}


def _depends_on_another(verdict: Verdict, known: Mapping[Cell, Verdict], report: Report) -> bool:
    """Whether a law that this one requires gave no verdict: what it then says depends on which laws were asked."""
    required = report.laws[verdict.law]["requires"] if verdict.law in report.laws else ()
    found = (known.get((verdict.spec, law, verdict.case)) for law in required)
    return any(other is not None and (other.status is Status.ERROR or other.finding.is_cut_off) for other in found)


def _depends_on_the_machine(verdict: Verdict) -> bool:
    """Whether a slower or faster machine may give another verdict: its limit ran out."""
    return verdict.finding.is_cut_off
