"""What is wrong only after other calls follows from what those leave behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradspec._audit._eager_spec import eager_spec
from gradspec._audit._first_calls import LAW
from gradspec._audit._follows import asked_again, following
from gradspec._audit._measured import Measured
from gradspec._audit._subject import Subject
from gradspec.law import Law, Status, Verdict
from gradspec.profile import Profile
from gradspec.report import Report
from gradspec.spec import Case


def with_earlier(
    report: Report,
    subject: Subject,
    cases: Sequence[Case],
    measured: Measured,
    laws: Sequence[Law],
    profile: Profile,
    seed: int,
) -> Report:
    """Return a report in which a law that holds for a call alone follows from `earlier_calls`, if that is broken."""
    broken = {(one.law, one.case): one.finding.follows for one in report.verdicts if one.status is Status.BROKEN}
    # Asked again behind other calls, a law that held is broken too: what follows from it follows from nothing told.
    suspects = {key for key, root in broken.items() if (root, key[1]) not in broken and key[0] != LAW}
    if len(cases) < 2 or LAW not in {law for law, _ in broken}:
        return report
    alone = dict[tuple[str, str], Verdict]()
    for case in cases:
        asked = [law for law in laws if (law.name, case.name) in suspects]
        if asked:
            alone |= asked_again(eager_spec(subject, (case,), measured), asked, profile, seed)

    def said(one: Verdict) -> Verdict:
        again = alone.get((one.law, one.case)) if (one.law, one.case) in suspects else None
        is_right = again is not None and again.status is Status.HOLDS
        return replace(one, finding=following(one.finding, LAW)) if is_right else one

    return replace(report, verdicts=tuple(map(said, report.verdicts)))
