"""The explanation of a wrong backward: the law `surrogate`, with the cause that further calls show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from gradspec._audit._apart import apart
from gradspec._audit._measured import Measured
from gradspec._audit._own_dtype import in_dtype
from gradspec._audit._single import as_single
from gradspec._audit._subject import Subject
from gradspec._audit._trials import flat_trial
from gradspec._finding import ASIDE, MEANT
from gradspec.explain import by_differences, why_not_derivative
from gradspec.law import Finding, Law, Rank, Reason, Status, Verdict
from gradspec.laws import quietly
from gradspec.profile import Profile
from gradspec.report import Report
from gradspec.spec import Case

#: How far they are apart where a constant has the digits of float32.
_SHORT = torch.finfo(torch.float32).eps
#: And where their numbers show that float32 rounds them, as sums that are carried in it.
_SUMMED = 32 * _SHORT
#: What nobody means.
_CERTAIN = ("repeated index",)


def with_how_wrong(
    report: Report,
    subject: Subject,
    cases: Sequence[Case],
    measured: Measured,
    laws: Sequence[Law],
    profile: Profile,
    seed: int,
) -> Report:
    """Return a report in which a broken law `surrogate` says how backward is wrong, where other calls show it."""
    law = next((law for law in laws if law.name == "surrogate"), None)
    # A verdict that is reused says it already.
    broken = {v.case: v.finding.details.get(ASIDE, ()) for v in report.violations if _is_unexplained(v)}
    said: dict[str, _Shown] = {}
    subject, cases = as_single(subject, cases, measured) or (subject, cases)
    for case in cases:
        if law is None or case.name not in broken:
            continue
        wrong = replace(measured, wrt=tuple(name for name in measured.wrt if name not in broken[case.name]))
        found = apart(partial(_said, law, subject, case, wrong, profile, seed), profile, seed)
        if isinstance(found, _Shown):
            said[case.name] = found
    verdicts = (
        replace(v, finding=said[v.case].told(v.finding)) if v.law == "surrogate" and v.case in said else v
        for v in report.verdicts
    )
    return replace(report, verdicts=tuple(verdicts))


def _is_unexplained(verdict: Verdict) -> bool:
    finding = verdict.finding
    is_wrong = finding.status is Status.BROKEN and finding.rank != Rank.WASTE
    is_compared = bool(finding.got)  # and has not ended the process
    return verdict.law == "surrogate" and is_wrong and is_compared and finding.reason is None and not finding.follows


@dataclass(frozen=True)
class _Shown:
    """What calls show of a wrong gradient: how it is wrong, and its numbers beside the differences of forward."""

    why: Reason | None
    numbers: Finding | None

    def told(self, finding: Finding) -> Finding:
        """Return a finding with both, and with what the law says beside it where backward may be meant so."""
        why, numbers = self.why, self.numbers
        if why is not None:
            facts = {key: value for key, value in finding.details.items() if key != MEANT or why.kind not in _CERTAIN}
            words = ": ".join(filter(None, (why.words, finding.likely)))
            is_short = numbers is None and bool(why.evidence.get("digits")) and _off(finding) <= _SHORT
            finding = replace(finding, reason=why, likely=words, details=facts)
            if is_short:
                finding = replace(finding, message=f"{finding.message}: {why.words}", rank=Rank.WASTE)
        if numbers is None:
            return finding
        return replace(
            finding,
            message=f"{finding.message}: {numbers.message}",
            argument=numbers.argument,
            index=numbers.index,
            got=numbers.got,
            expected=f"{numbers.expected} by central differences",
            rank=Rank.WASTE if numbers.rank == Rank.WASTE and _off(finding) <= _SUMMED else finding.rank,
        )


def _off(finding: Finding) -> float:
    """Return how far two derivatives along a direction are apart, of the larger; infinite where there are none."""
    try:
        got, expected = float(finding.got), float(str(finding.expected).split()[0])
    except (ValueError, IndexError):
        return math.inf
    size = max(abs(got), abs(expected))
    return abs(got - expected) / size if size else math.inf


def _said(law: Law, subject: Subject, case: Case, measured: Measured, profile: Profile, seed: int) -> _Shown:
    trial = flat_trial(subject, case, measured, profile, seed)
    numbers: Finding | None = quietly(lambda: by_differences(trial))
    # Differences show a cause in float64 only: a call with arguments of less is made with more, where that is taken.
    if numbers is None and (wide := in_dtype((case,), torch.float64)):
        other = flat_trial(subject, wide[0], measured, profile, seed)
        found: Finding | None = quietly(lambda: by_differences(other))
        if found is not None and found.reason is not None:
            trial, numbers = other, found
    return _Shown(why_not_derivative(law, trial, numbers), numbers)
