"""What follows from a write to an argument: it does not happen where each argument of the call is a copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradspec._audit._eager_spec import eager_spec
from gradspec._audit._follows import asked_again, following
from gradspec._audit._in_place import on_copies
from gradspec._audit._measured import Measured
from gradspec._audit._subject import Subject
from gradspec.law import Law, Rank, Status, Verdict
from gradspec.profile import Profile
from gradspec.report import Report
from gradspec.spec import Case

#: The law that a write breaks, and the one that names its line.
ROOT, LINE = "inputs_untouched", "declared_writes"


def with_writes(
    report: Report,
    subject: Subject,
    cases: Sequence[Case],
    measured: Measured,
    laws: Sequence[Law],
    profile: Profile,
    seed: int,
) -> Report:
    """Return a report in which what holds for copies follows from the write, which has the line."""
    broken_by = {v.case: v for v in report.verdicts if v.law == ROOT and _is_wrong(v)}
    others = {v.law for v in report.verdicts if v.case in broken_by and v.law != ROOT and _is_wrong(v)}
    asked = [law for law in laws if law.name in others]
    if not asked:
        return report
    given = tuple(case for case in cases if case.name in broken_by)
    copying = on_copies(subject, tuple(subject.signature.parameters))
    found = asked_again(eager_spec(copying, given, measured), asked, profile, seed)
    held = {cell for cell, verdict in found.items() if verdict.status is Status.HOLDS}
    lines = {v.case: v.finding.details["line"] for v in report.verdicts if v.law == LINE and (v.law, v.case) in held}

    def said(verdict: Verdict) -> Verdict:
        if verdict.law == ROOT and verdict.case in lines:
            details = {**verdict.finding.details, "place": lines[verdict.case]}
            return replace(verdict, finding=replace(verdict.finding, details=details))
        why = verdict.finding.reason
        is_of_the_line = (
            why is not None and why.kind == "overwritten" and why.evidence["line"] == lines.get(verdict.case)
        )
        if not _is_wrong(verdict) or not (is_of_the_line or (verdict.law, verdict.case) in held):
            return verdict
        return replace(verdict, finding=following(verdict.finding, ROOT))

    return replace(report, verdicts=tuple(map(said, report.verdicts)))


def _is_wrong(verdict: Verdict) -> bool:
    finding = verdict.finding
    return finding.status is Status.BROKEN and finding.rank != Rank.WASTE and not finding.follows
