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
from gradspec.laws.tensor._interleaved import INTERLEAVED
from gradspec.laws.tensor._surrogate import SURROGATE
from gradspec.profile import Profile
from gradspec.report import Report
from gradspec.spec import Case


def with_parameters(
    report: Report,
    subject: Subject,
    cases: Sequence[Case],
    plain: Measured,
    judged: Sequence[str],
    laws: Sequence[Law],
    profile: Profile,
    seed: int,
) -> Report:
    """Return a report in which backward is wrong for a parameter where it does not apply the derivative of forward.

    And where it does so no more once another call has moved the buffers.

    Args:
        report: what the laws say with the reference.
        subject: the module, with its reference.
        cases: its calls.
        plain: what plain calls show.
        judged: the arguments that the reference says the gradient of: it may read the parameters of the module.
        laws: those of the audit.
        profile: how hard.
        seed: of tensors and directions.
    """
    unread = subject.state.keys() - subject.fixed - set(judged)
    trained = tuple(name for name in plain.wrt if name in unread)
    names = {law.name for law in laws}
    asked = [SURROGATE] if names & {"vjp", SURROGATE.name} else []
    asked += [INTERLEAVED] if INTERLEAVED.name in names else []
    # Where a gradient is meant to be another one, nobody says which it is for a parameter.
    if not trained or not asked or subject.primal is None or subject.surrogate is not None:
        return report
    alone, measured = replace(subject, primal=None), replace(plain, wrt=trained)
    found = asked_again(eager_spec(alone, tuple(cases), measured), asked, profile, seed)
    wrong = tuple(one for one in found.values() if one.status is Status.BROKEN)
    if not wrong:
        return report
    shown = with_how_wrong(replace(report, verdicts=wrong), alone, cases, measured, asked, profile, seed).verdicts
    cells = {(one.law, one.case) for one in shown}
    return replace(report, verdicts=(*(v for v in report.verdicts if (v.law, v.case) not in cells), *shown))
