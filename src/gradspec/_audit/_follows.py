"""Which findings of an audit follow from another one: what mends that one mends them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gradspec._audit._measured import Measured
from gradspec.explain._linearity import NOT_LINEAR
from gradspec.law import Finding, Status, Verdict, broken
from gradspec.laws.tensor.support._slope_of_backward import ALONG, COTANGENT
from gradspec.report import Report

#: What compares two backward passes, or one with a derivative: noise in backward breaks it.
_OF_BACKWARD = (
    "surrogate",
    "cotangent_linearity",
    "second_order",
    "forward_over_reverse",
    "undefined_cotangent",
    "needs_input_grad",
    "retained_graph",
    "interleaved",
    "aliasing",
    "scalar",
)
#: Of which cotangents the gradients of an argument are, in the words of the laws.
_WHICH = ("", "the combined cotangent of ")


def with_roots(report: Report, measured: Measured) -> Report:
    """Return a report in which findings follow from one that says that backward is wrong."""
    failed = {(v.law, v.case): v for v in report.violations if v.status is Status.BROKEN}
    return replace(report, verdicts=tuple(_followed(v, failed, measured) for v in report.verdicts))


def _followed(verdict: Verdict, failed: Mapping[tuple[str, str], Verdict], measured: Measured) -> Verdict:
    root = _root(verdict, failed, measured)
    if verdict.status is not Status.BROKEN or verdict.finding.follows:
        return verdict
    if not root:
        return verdict
    return replace(verdict, finding=following(verdict.finding, root))


def following(finding: Finding, root: str) -> Finding:
    """Return what is said of a finding that follows from that of another law."""
    details = {**finding.details, "found": finding.message}
    return broken(f"follows from {root}", follows=root, details=details)


def _ignored(verdict: Verdict | None) -> list[str]:
    """Return the arguments whose gradient was shown to be the same for every cotangent."""
    reason = verdict.finding.reason if verdict is not None else None
    if verdict is None or reason is None or reason.kind not in ("ignored cotangent", "cotangent of ones"):
        return []
    return list(reason.evidence.get("arguments", [verdict.finding.argument.partition("`")[2].partition("`")[0]]))


def _root(verdict: Verdict, failed: Mapping[tuple[str, str], Verdict], measured: Measured) -> str:
    is_lost = verdict.law == "needs_input_grad" and verdict.finding.got == "None"  # which no noise does
    # Where forward draws too, the engine asks again with the draws of forward.
    is_of_backward = measured.noisy_backward and not measured.noisy_forward
    if is_of_backward and verdict.law in _OF_BACKWARD and not is_lost and ("declared_draws", verdict.case) in failed:
        return "declared_draws"
    finding, case = verdict.finding, verdict.case
    # What is clipped without a line is no derivative for large cotangents alone.
    derivative = failed.get(("surrogate", case))
    why = derivative.finding.reason if derivative is not None else None
    if why is not None and why.kind in NOT_LINEAR and ("cotangent_linearity", case) in failed:
        # Of several cases one may have shown the line.
        whys = (v.finding.reason for (law, _), v in failed.items() if law == "surrogate")
        is_root = why.kind != "clipped" or any("statement" in one.evidence for one in whys if one is not None)
        if verdict.law == ("cotangent_linearity" if is_root else "surrogate"):
            return "surrogate" if is_root else "cotangent_linearity"
    # What comes of no cotangent is there without any, too.
    if why is not None and why.kind == "offset" and verdict.law == "undefined_cotangent":
        return "surrogate"
    # What is lost in the call as it is may be what another argument decides about.
    lost = [v.finding.reason for (law, _), v in failed.items() if law == "surrogate" and "lost" in v.finding.details]
    if verdict.law == "needs_input_grad" and finding.reason is not None and finding.reason in lost:
        return "surrogate"
    # What the next call puts in the place of what this one keeps is one mistake, in whatever order the two go back.
    other = failed.get(("interleaved", case))
    if verdict.law == "earlier_calls" and finding.reason is not None and other is not None:
        return "interleaved" if finding.reason.is_as(other.finding.reason) else ""
    # A gradient that is the same for every cotangent is no linear one, and it is there without any.
    if verdict.law in ("cotangent_linearity", "undefined_cotangent"):
        for law in ("surrogate", "vjp"):
            ignored = _ignored(failed.get((law, case)))
            if any(finding.argument.startswith(f"gradient of {which}`{name}`") for name in ignored for which in _WHICH):
                return law
    # Backward is linear in the cotangent: where it is wrong, and autograd's answer for the cotangent is another one, an
    # assignment has dropped terms. A derivative that is lost has a cause of its own, and so has one in an argument.
    is_unknown = finding.reason is None and finding.argument == ALONG.format(COTANGENT)
    if verdict.law == "second_order" and is_unknown and ("surrogate", case) in failed:
        return "surrogate"
    return ""
