"""A law that holds on every case of a spec, and would hold on each of them for a wrong result too, shows nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from gradspec._finding import UNSEEN, passing
from gradspec.law import Finding, Status, Verdict

#: A spec under which one of these is broken has been shown something.
_ROOTS = ("primal", "vjp", "surrogate")

#: A law whose right answers are zero whatever the function: without elements, a sum over them is.
_EXEMPT = ("empty",)
#: A law of one element: which of several stands where, others say.
_OF_ONE = ("scalar",)


def with_witness(finding: Finding, facts: Mapping[str, Any]) -> Finding:
    """Return the finding of a check that holds, with what its comparisons could have shown and what they could not."""
    if finding.status is not Status.HOLDS or not facts:
        return finding
    return replace(finding, details={**finding.details, **facts})


def settled(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """Return the verdicts of whole specs; those that hold and show nothing on any case of their spec are `vacuous`."""
    before = [unsettled(verdict) for verdict in verdicts]
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in before:
        groups.setdefault((verdict.spec, verdict.law), []).append(verdict)
    wrong = {verdict.spec for verdict in before if verdict.law in _ROOTS and verdict.status is Status.BROKEN}
    cases = {key: frozenset(verdict.case for verdict in group) for key, group in groups.items()}
    of_spec: dict[str, set[frozenset[str]]] = {}
    for (spec, _), mine in cases.items():
        of_spec.setdefault(spec, set()).add(mine)
    # A law that ran on fewer cases than another might have shown something on the rest.
    partial = {key for key, mine in cases.items() if any(mine < other for other in of_spec[key[0]])}
    said = {key: None if key[0] in wrong or key in partial else _said(group) for key, group in groups.items()}
    return tuple(_vacuous(verdict, said[verdict.spec, verdict.law]) for verdict in before)


def unsettled(verdict: Verdict) -> Verdict:
    """Return a verdict as its check gave it: whether it is vacuous, the other cases of the spec say."""
    if verdict.status is not Status.VACUOUS:
        return verdict
    details = {key: value for key, value in verdict.finding.details.items() if key != UNSEEN}
    return replace(
        verdict, finding=replace(verdict.finding, status=Status.HOLDS, message="", likely="", details=details)
    )


def _vacuous(verdict: Verdict, said: tuple[str, str, str] | None) -> Verdict:
    if said is None or verdict.status is not Status.HOLDS or not verdict.finding.details.get("blind"):
        return verdict
    message, likely, unseen = said
    details = {**verdict.finding.details, UNSEEN: unseen}
    found = replace(verdict.finding, status=Status.VACUOUS, message=message, likely=likely, details=details)
    return replace(verdict, finding=found)


def _said(group: list[Verdict]) -> tuple[str, str, str] | None:
    """Return what a wrong result would have passed for, what to do, and of what; None where some case would notice."""
    details: list[Mapping[str, Any]] = [v.finding.details for v in group if v.status is Status.HOLDS]
    shown = {name for found in details for name in found.get("shows", ())}
    blind = dict.fromkeys(name for found in details for name in found.get("blind", ()) if name not in shown)
    if group[0].law in _OF_ONE:
        blind = {name: None for name in blind if not name.endswith(", swapped")}
    if not blind or any(v.status.is_failure or v.status is Status.NOT_PROMISED or v.law in _EXEMPT for v in group):
        return None
    name = next(iter(blind))
    number = sum(name in found.get("blind", ()) for found in details)
    cases = "the one case" if number == 1 else f"all {number} cases"
    if name.endswith(", swapped"):
        return f"{passing(name)}: all are equal on {cases}", "give a case in which they differ", name
    slopes = (found.get("sloped", {}).get(name.split("`")[1], "") for found in details if "`" in name)
    where = next(filter(None, slopes), "")
    remedy = f"give a case with {where}" if where else "give a case in which it is not zero"
    if name.startswith("gradient"):
        argument = name.split("`")[1]
        remedy += f", or declare zero_gradient=({argument!r},) if it is zero everywhere"
    return f"{passing(name)}: the right one is 0 on {cases}", remedy, name
