"""The explanation of a wrong backward: the law `surrogate`, with the cause that further calls show."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from gradspec._audit._asked import Asked
from gradspec._audit._case_syntax import read_case
from gradspec._audit._own_dtype import in_dtype
from gradspec._audit._single import as_single
from gradspec._audit._sweep import resized
from gradspec._finding import ALSO, ASIDE, MEANT
from gradspec.explain import ELEMENTS, MENDED, by_differences, why_not_derivative, without_reasons
from gradspec.explain._linearity import NOT_LINEAR
from gradspec.law import HOLDS, Finding, Law, Rank, Reason, Status, Verdict
from gradspec.laws import quietly
from gradspec.laws.tensor.support._call import WIDE, differentiable, narrowed
from gradspec.laws.tensor.support._compare import describe
from gradspec.laws.tensor.support._witness import subject as subject_of
from gradspec.report import Report
from gradspec.spec import Case

#: How far they are apart where a constant has the digits of float32.
_SHORT = torch.finfo(torch.float32).eps
#: And where their numbers show that float32 rounds them, as sums that are carried in it.
_SUMMED = 32 * _SHORT
#: How long the sizes of a smaller call are at most, and how often one of them is made so.
_SIDE, _TRIES = 5, 6
#: What a smaller call shows of itself alone: which arguments are wrong, and that all of a gradient is zero.
_OF_ITS_OWN = ("of arguments", "zero")
#: What is said of a backward, and not of one gradient.
_OF_BACKWARD = (*NOT_LINEAR, "exchanged")
#: What nobody means.
_CERTAIN = ("repeated index", "exchanged", "transposed", "ignored cotangent", "cotangent of ones")


def with_how_wrong(report: Report, asked: Asked) -> Report:
    """Return a report in which a broken law `surrogate` says how backward is wrong, where other calls show it."""
    law = next((law for law in asked.laws if law.name == "surrogate"), None)
    # A verdict that is reused says it already.
    broken = {v.case: v.finding.details.get(ASIDE, ()) for v in report.violations if _is_unexplained(v)}
    said: dict[str, _Shown] = {}
    asked = as_single(asked)
    for case in asked.cases:
        if law is None or case.name not in broken:
            continue
        wrt = tuple(name for name in asked.measured.wrt if name not in broken[case.name])
        of_wrt = replace(asked, measured=replace(asked.measured, wrt=wrt))
        found = asked.apart(partial(_said, law, of_wrt, case))
        if isinstance(found, Finding):  # the search for a cause has taken all the time, or has ended the process
            found = asked.apart(partial(_without_a_cause, of_wrt, case))
        if isinstance(found, _Shown):
            said[case.name] = found
    wide = {case.name for case in asked.cases if _is_wide(case)}

    def told(verdict: Verdict) -> Verdict:
        if verdict.law != "surrogate" or verdict.case not in said:
            return verdict
        finding = said[verdict.case].told(verdict.finding)
        # Where no argument has more digits than a float32, a result is not short of any.
        is_short = finding.rank == Rank.WASTE and verdict.case not in wide
        return replace(verdict, finding=HOLDS if is_short else finding)

    return replace(report, verdicts=tuple(map(told, report.verdicts)))


def _is_wide(case: Case) -> bool:
    """Whether an argument of a call is in double precision."""
    leaves = [leaf for leaf in tree_leaves((case.args, dict(case.kwargs))) if isinstance(leaf, Tensor)]
    return any(leaf.dtype in WIDE for leaf in leaves)


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
        also = {ALSO: numbers.details[ALSO]} if ALSO in numbers.details else {}
        return replace(
            finding,
            details={**finding.details, **also},
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


def _said(law: Law, asked: Asked, case: Case) -> _Shown:
    trial = asked.trial(case)
    numbers: Finding | None = quietly(lambda: by_differences(trial))
    if numbers is not None:
        return _Shown(why_not_derivative(law, trial, numbers), numbers)
    # Differences show a cause in float64 only: a call with arguments of less is made with more, where that is taken.
    if wide := in_dtype((case,), torch.float64):
        other = asked.trial(wide[0])
        found: Finding | None = quietly(lambda: by_differences(other))
        if found is not None and found.reason is not None:
            return _Shown(why_not_derivative(law, other, found), found)
    # And of few numbers only.
    small: Case | None = quietly(lambda: _made_small(law, asked, case))
    of_small = None if small is None else _of_a_small_call(law, asked, small)
    if of_small is not None and of_small.kind not in _OF_ITS_OWN:
        return _Shown(of_small, None)
    why = why_not_derivative(law, trial)
    mended = None if of_small is None else of_small.evidence.get(MENDED)
    return _Shown(replace(why, words=f"{why.words}; {mended}") if why is not None and mended else why, None)


def _without_a_cause(asked: Asked, case: Case) -> _Shown:
    with without_reasons():
        return _Shown(None, quietly(lambda: by_differences(asked.trial(case))))


def _of_a_small_call(law: Law, asked: Asked, small: Case) -> Reason | None:
    """Return what a smaller call shows in float64 that is true of the one which is asked about, too."""
    (wide,) = in_dtype((small,), torch.float64) or (small,)
    trial = asked.trial(wide)
    found: Finding | None = quietly(lambda: by_differences(trial))
    why = None if found is None or found.reason is None else why_not_derivative(law, trial, found)
    if found is None or found.reason is None or why is None:
        return None
    shown = f"(shown by {small.name})"
    evidence = {**why.evidence, **({MENDED: f"{line} {shown}"} if (line := found.reason.evidence.get(MENDED)) else {})}
    is_said = why is not found.reason or why.kind in _OF_BACKWARD
    of = "" if is_said else f"{subject_of(found.argument)}: "
    return replace(why, words=f"{of}{why.words} {shown}", evidence=evidence)


def _made_small(law: Law, asked: Asked, case: Case) -> Case | None:
    """Return a call with fewer numbers that breaks a law, too; None where there is none."""
    found: Case | None = None
    for _ in range(_TRIES):
        if (count := _numbers(found or case)) <= ELEMENTS:
            return found
        for one in _smaller(found or case, asked.seed, asked.profile.device):
            if _numbers(one) < count and quietly(lambda one=one: law.check(asked.trial(one)).status is Status.BROKEN):  # type: ignore[misc]
                found = one
                break
        else:
            return None
    return None


def _smaller(case: Case, seed: int, device: str) -> Iterator[Case]:
    """Yield a call with one of its sizes smaller, the largest size first."""
    if (texts := quietly(lambda: list(resized(case.name, _SIDE)))) is not None:
        for text in texts:
            if (one := quietly(lambda text=text: read_case(text, seed=seed, device=device))) is not None:  # type: ignore[misc]
                yield one
        return
    leaves = tree_leaves((case.args, dict(case.kwargs)))
    sizes = {size for leaf in leaves if isinstance(leaf, Tensor) for size in leaf.shape}
    for size in sorted(sizes, reverse=True):
        for length in range(min(_SIDE, size - 1), 1, -1):
            if length not in sizes:
                call = tree_map(partial(narrowed, size=size, length=length), (case.args, dict(case.kwargs)))
                yield Case(name=describe(call[0]), args=call[0], kwargs=call[1])


def _numbers(case: Case) -> int:
    """Return how many numbers the arguments of a call have that may be differentiated."""
    leaves = tree_leaves((case.args, dict(case.kwargs)))
    return sum(t.numel() for t in leaves if isinstance(t, Tensor) and differentiable(t))
