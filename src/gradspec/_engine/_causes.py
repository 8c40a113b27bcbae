"""Group violations: each follows from another law's, from the function's form, from torch, or is its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from gradspec._engine._plan import Check
from gradspec.explain import beside_noise, beside_others, instead_of, is_of_noise, with_reason
from gradspec.law import AnyTrial, Finding, Law, Rank, Reason, Status, broken
from gradspec.laws import cause_of, is_audited, quietly, torch_version
from gradspec.laws.tensor._export import has_branch_for_export
from gradspec.laws.tensor._no_host_read import why_refused
from gradspec.laws.tensor.support._edge import why_empty
from gradspec.laws.tensor.support._form import batches
from gradspec.spec import FunctionSpec

#: Makes a new trial of the check, whose tensors are its own; of another law where one is given.
NewTrial = Callable[[], AnyTrial]


def judged(finding: Finding, check: Check, trial: NewTrial, prior: Mapping[str, Status]) -> Finding:
    """Return a finding with its rank and its cause, held to what the spec promises.

    Args:
        finding: what the law found.
        check: the law, the spec and the case.
        trial: makes a new trial.
        prior: the statuses of this case under the laws that ran before.
    """
    law, promised = check.law, promised_by(check, check.law)
    if promised is False:
        return _refusal(finding, law)
    finding, trial = _whatever_the_law(check, trial, finding)
    if finding.follows or finding.status is not Status.BROKEN:
        return finding
    may_raise = promised is None and not (law.name == "vmap" and _has_rule(check))
    if "raised" not in finding.details or not may_raise:
        if finding.reason is None or not finding.reason.of_function:
            finding = _beside_others(check, trial, prior, finding)
        if finding.follows or finding.status is not Status.BROKEN:
            return finding
    raises = "raised" in finding.details
    if raises and may_raise:
        return Finding(status=Status.NOT_PROMISED, message=finding.message, details=_lasting(finding))
    finding = replace(finding, rank=finding.rank or (Rank.REFUSED if raises else Rank.WRONG))
    if not isinstance(check.spec, FunctionSpec) or (finding.reason is not None and finding.reason.of_function):
        return finding
    if raises and not finding.likely:
        why = quietly(lambda: why_refused(trial(), finding))  # type: ignore[arg-type]  # the same
        finding = replace(finding, likely=why or quietly(lambda: why_empty(trial(), law.check)) or "")  # type: ignore[arg-type]  # the same
    if law.capability is None:
        return with_reason(law, trial, finding)  # type: ignore[arg-type]  # a law of functions has such trials
    # With the plain finding: what an experiment on this function adds, that on a sound one of its form does not have.
    is_asked = promised is not None
    cause = quietly(lambda: cause_of(law, trial(), finding, in_full=is_asked))  # type: ignore[arg-type]  # a law of functions has such trials
    if cause is None:
        return with_reason(law, trial, finding)  # type: ignore[arg-type]  # a law of functions has such trials
    if promised is None:
        why = "a sound function of this form does so too" if cause.lacks else f"a limit of torch {torch_version()}"
        return Finding(status=Status.NOT_PROMISED, message=f"{why}: {finding.message}", details=_lasting(finding))
    if not cause.lacks:
        said = f"a limit of torch {torch_version()}, for a sound function too: {finding.message}"
        accept = f"do not promise it: `{law.capability}=None` in its `supports`"
        is_done = law.name == "export" and quietly(lambda: has_branch_for_export(trial()))  # type: ignore[arg-type]  # the same
        remedy = "" if is_done else law.section("Remedy")
        return replace(
            finding, rank=Rank.LIMIT, message=said, likely=f"{remedy} Or {accept}" if remedy else accept, reason=None
        )
    details = {**finding.details, "lacks": list(cause.lacks), "patch": cause.patch}
    return replace(finding, likely=cause.said, reason=None, details=details)


def _lasting(finding: Finding) -> dict[str, Any]:
    """Return the details of what is not a failure: without the line of an error, which the next edit moves."""
    return {key: value for key, value in finding.details.items() if key != "place"}


def promised_by(check: Check, law: Law) -> bool | None:
    """Return whether a spec promises what a law asks: False for what it refuses, None where it says nothing."""
    if law.capability is None:
        # An audit has no spec that promises a transform: what refuses one breaks no word.
        may_refuse = law.refusable_without and not getattr(check.spec.supports, law.refusable_without)
        return None if may_refuse or (law.family == "transforms" and _is_audit(check)) else True
    promised: bool | None = getattr(check.spec.supports, law.capability)
    return promised


def _has_rule(check: Check) -> bool:
    """Whether the Function of an audit says itself that it can be batched."""
    cls: Any = getattr(check.spec, "autograd_function", None)
    return _is_audit(check) and cls is not None and batches(cls)


def _is_audit(check: Check) -> bool:
    return isinstance(check.spec, FunctionSpec) and is_audited(check.spec)


def _refusal(finding: Finding, law: Law) -> Finding:
    """A promise of no support is kept by raising; silence, right or wrong, breaks it."""
    if "raised" in finding.details:
        return Finding(status=Status.REFUSED_AS_DECLARED, message=finding.message, details=_lasting(finding))
    if finding.status is Status.HOLDS:
        said = f"works, though the spec promises no {law.capability}: change `supports`"
        return broken(said, rank=Rank.WASTE)
    return replace(finding, rank=finding.rank or Rank.WRONG) if finding.status is Status.BROKEN else finding


def _whatever_the_law(check: Check, trial: NewTrial, finding: Finding) -> tuple[Finding, NewTrial]:
    """Return what is said of a failure where noise, memory that nobody wrote or a NaN makes all laws fail.

    Of noise it is what is left while all draws are the same, and the trial in which they are.
    """
    if not isinstance(check.spec, FunctionSpec) or finding.status not in (Status.BROKEN, Status.INCONCLUSIVE):
        return finding, trial
    of_function: Callable[[], Any] = trial
    if (instead := instead_of(check.law, of_function, finding)) is not None:
        return instead, trial
    left = quietly(lambda: beside_noise(check.law, of_function, finding))
    if left is None:
        return finding, trial
    said = left.finding if left.root is None else follows(check, left.root, left.finding)
    return said, left.trial or trial


def _beside_others(check: Check, trial: NewTrial, prior: Mapping[str, Status], finding: Finding) -> Finding:
    """Return what is left of a finding where another law's violation explains it; else the finding."""
    if not isinstance(check.spec, FunctionSpec) or (is_of_noise(check.law) and "raised" not in finding.details):
        return finding
    left = beside_others(check.law, check.roots, trial, prior, finding)  # type: ignore[arg-type]  # of a function
    if left.root is None:
        return left.finding
    found = follows(check, left.root, left.finding)
    # What is implied by its root says how it is wrong in words of its own.
    is_implied = found.follows in check.law.implied_by
    return found.because(_why(check, trial, left.finding)) if is_implied else found


def _why(check: Check, trial: NewTrial, finding: Finding) -> Reason | None:
    return with_reason(check.law, trial, finding).reason  # type: ignore[arg-type]  # of a function


def follows(check: Check, root: Law, finding: Finding) -> Finding:
    """Return a finding that follows from another one, with its own numbers."""
    said = f"follows from {root.name}"
    if promised_by(check, root) is None:
        return Finding(status=Status.NOT_PROMISED, message=f"{said}, which is not promised")
    details = {**finding.details, "found": finding.message}
    rank = Rank.WASTE if finding.rank == Rank.WASTE else ""  # else it has that of its root
    return replace(finding, message=said, follows=root.name, rank=rank, likely="", reason=None, details=details)
