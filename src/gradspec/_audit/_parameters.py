"""The gradients of a module's parameters beside a reference, which takes its inputs alone: held to differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradspec._audit._asked import Asked
from gradspec._audit._how_wrong import with_how_wrong
from gradspec.law import Status
from gradspec.laws.tensor._interleaved import INTERLEAVED
from gradspec.laws.tensor._surrogate import SURROGATE
from gradspec.report import Report


def with_parameters(report: Report, asked: Asked, judged: Sequence[str]) -> Report:
    """Return a report in which backward is wrong for a parameter where it does not apply the derivative of forward.

    And where it does so no more once another call has moved the buffers.

    Args:
        report: what the laws say with the reference.
        asked: the audit of the module, with its reference.
        judged: the arguments that the reference says the gradient of: it may read the parameters of the module.
    """
    subject, names = asked.subject, {law.name for law in asked.laws}
    unread = subject.state.keys() - subject.fixed - set(judged)
    trained = tuple(name for name in asked.measured.wrt if name in unread)
    laws = [SURROGATE] if names & {"vjp", SURROGATE.name} else []
    laws += [INTERLEAVED] if INTERLEAVED.name in names else []
    # Where a gradient is meant to be another one, nobody says which it is for a parameter.
    if not trained or not laws or subject.primal is None or subject.surrogate is not None:
        return report
    measured = replace(asked.measured, wrt=trained)
    alone = replace(asked, subject=replace(subject, primal=None), measured=measured, laws=laws)
    wrong = tuple(one for one in alone.again(laws).values() if one.status is Status.BROKEN)
    if not wrong:
        return report
    shown = with_how_wrong(replace(report, verdicts=wrong), alone).verdicts
    cells = {(one.law, one.case) for one in shown}
    return replace(report, verdicts=(*(v for v in report.verdicts if (v.law, v.case) not in cells), *shown))
