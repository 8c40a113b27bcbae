"""Whether a call gives after others what it gives in a process of its own, in which nothing was called before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from torch import Tensor

from gradspec._audit._apart import apart
from gradspec._audit._asked import Asked
from gradspec.explain._options import with_other_options
from gradspec.law import HOLDS, Finding, Rank, Status, Trial, Verdict
from gradspec.laws.tensor._earlier_calls import EARLIER, KEPT
from gradspec.laws.tensor.support._call import Inputs, like, outputs, vjp
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.profile import Profile
from gradspec.report import Report

LAW = "earlier_calls"
#: The results of a call by what they are.
_Answer = dict[str, Tensor | None]


def with_first_calls(report: Report, asked: Asked) -> Report:
    """Return a report in which a call is wrong that a call before it decides about.

    With a reference the law sees it; without one the function is all there is to compare with, as it is at first. What
    is called before is the other cases, and of the first of them the same call with other options.
    """
    held = {v.case: v for v in report.verdicts if v.law == LAW and v.status is Status.HOLDS}
    if asked.subject.has_reference or not held or not asked.measured.is_repeatable:
        return report
    trials = [asked.trial(case) for case in asked.cases[:EARLIER]]
    found = dict[str, Finding]()

    def answers(*calls: Trial) -> list[_Answer]:
        """Return what calls give, one after the other in a process of their own; nothing if that ends."""
        return _known(lambda: [_answer(one) for one in calls], asked.profile, asked.seed)

    in_order, last = (answers(*trials), answers(*trials[1:], trials[0])[-1:]) if len(trials) > 1 else ([], [])
    for trial, after in zip(trials, [*last, *in_order[1:]], strict=False) if in_order and last else ():
        alone = answers(trial)
        finding = _difference(trial, after, alone)
        # What differs from one process to the next is kept by none.
        if finding is HOLDS or trial.case.name not in held or _difference(trial, alone[0], answers(trial)) is not HOLDS:
            continue
        before = ", ".join(one.case.name for one in trials if one is not trial)
        details = {**finding.details, "called before": before}
        found[trial.case.name] = replace(finding.because(KEPT), details=details, rank=Rank.WRONG)

    first = trials[0]
    if first.case.name in held and not found:
        finding = _after_other_options(first, asked.profile, asked.seed)
        if finding is not HOLDS:
            found[first.case.name] = finding

    def said(verdict: Verdict) -> Verdict:
        is_found = verdict.law == LAW and verdict.case in found
        return replace(verdict, finding=found[verdict.case]) if is_found else verdict

    return replace(report, verdicts=tuple(map(said, report.verdicts)))


def _answer(trial: Trial) -> _Answer:
    inputs = Inputs.of(trial)
    y = outputs(trial.spec.function(*inputs.args()))
    values: _Answer = {"value" if len(y) == 1 else f"output {k}": t.detach() for k, t in enumerate(y)}
    given = vjp(trial.spec.function, inputs, like(y, trial.seed)) if inputs.wrt else {}
    return values | {f"gradient of `{name}`": t if t is None else t.detach() for name, t in given.items()}


def _after_other_options(trial: Trial, profile: Profile, seed: int) -> Finding:
    """Compare a call after the same call with other options with one that is the first of its process."""
    options = list(with_other_options(Inputs.of(trial)))
    options.sort(key=lambda one: one[0].evidence["value"] == 0)  # which asks for nothing at all

    def answer(*before: Inputs) -> list[_Answer]:
        return _known(partial(_after, trial, before), profile, seed)

    alone = answer() if options else []

    def difference(*before: Inputs) -> Finding:
        return next((_difference(trial, given, alone) for given in answer(*before)), HOLDS)

    if not alone or difference(*(other for _, other in options)) is HOLDS or difference() is not HOLDS:
        return HOLDS
    for option, other in options:
        if (finding := difference(other)) is not HOLDS:
            name, value = option.evidence["argument"], option.evidence["value"]
            words = f"{KEPT.words}; before it the same call was made with `{name}` {value!r}"
            return replace(finding.because(replace(KEPT, words=words, evidence=option.evidence)), rank=Rank.WRONG)
    return HOLDS


def _known(run: Callable[[], list[_Answer]], profile: Profile, seed: int) -> list[_Answer]:
    """Return what is answered in a process of its own; nothing if that ends."""
    given = apart(run, profile, seed)
    return [] if isinstance(given, Finding) else given


def _after(trial: Trial, others: Sequence[Inputs]) -> list[_Answer]:
    """Return what a call gives after the same call with other options, of those that it takes."""
    for other in others:
        quietly(lambda other=other: trial.spec.function(*other.args()))  # type: ignore[misc]  # a default
    return [_answer(trial)]


def _difference(trial: Trial, after: _Answer, alone: Sequence[_Answer]) -> Finding:
    """Compare what a call gives after others with what it gives alone; `holds` where one of them is not known."""
    first = next(iter(alone), {})
    compared = (compare(trial, f"{what} after other calls", after.get(what), right) for what, right in first.items())
    return next((one for one in compared if one is not HOLDS), HOLDS)
