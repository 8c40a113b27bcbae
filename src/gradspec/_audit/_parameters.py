"""The gradients of a module's parameters beside a reference, which takes its inputs alone: held to differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradspec._audit._eager_spec import eager_spec
from gradspec._audit._follows import asked_again
from gradspec._audit._how_wrong import with_how_wrong
from gradspec._audit._measured import Measured
from gradspec._audit._subject import Subject
from gradspec.law import Law, Status
from gradspec.laws.tensor._surrogate import SURROGATE
from gradspec.profile import Profile
from gradspec.report import Report
from gradspec.spec import Case


def with_parameters(
    report: Report,
    subject: Subject,
    cases: Sequence[Case],
    plain: Measured,
    laws: Sequence[Law],
    profile: Profile,
    seed: int,
) -> Report:
    """Return a report in which backward is wrong for a parameter where it does not apply the derivative of forward.

    Args:
        report: what the laws say with the reference.
        subject: the module, with its reference.
        cases: its calls.
        plain: what plain calls show.
        laws: those of the audit.
        profile: how hard.
        seed: of tensors and directions.
    """
    trained = tuple(name for name in plain.wrt if name in subject.state and name not in subject.fixed)
    # Where a gradient is meant to be another one, nobody says which it is for a parameter.
    is_asked = any(law.name in ("vjp", SURROGATE.name) for law in laws)
    if not trained or not is_asked or subject.primal is None or subject.surrogate is not None:
        return report
    alone, measured = replace(subject, primal=None), replace(plain, wrt=trained)
    asked = [SURROGATE]
    found = asked_again(eager_spec(alone, tuple(cases), measured), asked, profile, seed)
    wrong = tuple(one for one in found.values() if one.status is Status.BROKEN)
    if not wrong:
        return report
    shown = with_how_wrong(replace(report, verdicts=wrong), alone, cases, measured, asked, profile, seed).verdicts
    cells = {(one.law, one.case) for one in shown}
    return replace(report, verdicts=(*(v for v in report.verdicts if (v.law, v.case) not in cells), *shown))
