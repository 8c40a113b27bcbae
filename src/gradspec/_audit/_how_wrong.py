"""What an audit says of a wrong backward: the law `surrogate` with the cause that other calls show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from gradspec._audit._apart import apart
from gradspec._audit._eager_spec import eager_spec
from gradspec._audit._measured import Measured
from gradspec._audit._subject import Subject
from gradspec._engine._flat import flattened
from gradspec.explain import why_not_derivative
from gradspec.law import Finding, Law, Reason, Status, TrialOf, Verdict
from gradspec.profile import Profile
from gradspec.report import Report
from gradspec.spec import Case


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
    broken = {v.case for v in report.violations if _is_unexplained(v)}
    said: dict[str, Reason] = {}
    for case in cases:
        if law is None or case.name not in broken:
            continue
        found = apart(partial(_said, law, subject, case, measured, profile, seed), profile, seed)
        if isinstance(found, Reason):
            said[case.name] = found
    verdicts = (
        replace(v, finding=_because(v.finding, said[v.case])) if v.law == "surrogate" and v.case in said else v
        for v in report.verdicts
    )
    return replace(report, verdicts=tuple(verdicts))


def _is_unexplained(verdict: Verdict) -> bool:
    is_broken = verdict.law == "surrogate" and verdict.status is Status.BROKEN
    return is_broken and verdict.finding.reason is None and not verdict.finding.follows


def _because(finding: Finding, why: Reason) -> Finding:
    """Return a finding with its cause, and with what the law says beside it where backward may be meant so."""
    is_certain = why.kind == "repeated index"
    return replace(finding, reason=why, likely=why.words if is_certain else f"{why.words}: {finding.likely}")


def _said(law: Law, subject: Subject, case: Case, measured: Measured, profile: Profile, seed: int) -> Reason | None:
    spec = eager_spec(subject, (case,), measured, seed)
    return why_not_derivative(law, flattened(TrialOf(spec=spec, case=case, profile=profile, seed=seed)))
