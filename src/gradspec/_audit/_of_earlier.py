"""What is wrong only after other calls follows from what those leave behind."""

from __future__ import annotations

from dataclasses import replace

from gradspec._audit._asked import Asked
from gradspec._audit._first_calls import LAW
from gradspec._audit._follows import following
from gradspec.law import Status, Verdict
from gradspec.report import Report


def with_earlier(report: Report, asked: Asked) -> Report:
    """Return a report in which a law that holds for a call alone follows from `earlier_calls`, if that is broken."""
    broken = {(one.law, one.case): one.finding.follows for one in report.verdicts if one.status is Status.BROKEN}
    # Asked again behind other calls, a law that held is broken too: what follows from it follows from nothing told.
    suspects = {key for key, root in broken.items() if (root, key[1]) not in broken and key[0] != LAW}
    if len(asked.cases) < 2 or LAW not in {law for law, _ in broken}:
        return report
    alone = dict[tuple[str, str], Verdict]()
    for case in asked.cases:
        if laws := [law for law in asked.laws if (law.name, case.name) in suspects]:
            alone |= asked.again(laws, cases=[case])

    def said(one: Verdict) -> Verdict:
        again = alone.get((one.law, one.case)) if (one.law, one.case) in suspects else None
        is_right = again is not None and again.status is Status.HOLDS
        return replace(one, finding=following(one.finding, LAW)) if is_right else one

    return replace(report, verdicts=tuple(map(said, report.verdicts)))
