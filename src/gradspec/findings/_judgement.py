"""Which findings make a run fail, which of them an earlier record has too, and what is mended since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradspec._scope import Scope
from gradspec.findings._findings import ORDER, Found, findings, rank_of, scope_of
from gradspec.law import Rank, Status, Verdict

if TYPE_CHECKING:
    from gradspec.report import Report


@dataclass(frozen=True, kw_only=True)
class Bar:
    """The findings that make a run fail."""

    #: What is asked about; empty: what the profile of the run says, or else what each spec promises.
    scopes: tuple[Scope, ...] = ()
    #: The least dangerous rank that fails; what could not be judged always does.
    fail_on: Rank = Rank.REFUSED
    #: Whether a question fails too, and a law that shows nothing of the calls of an audit.
    strict: bool = False


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A finding, and what it means for the run."""

    found: Found
    #: The verdicts of it that the run asks about.
    asked: tuple[Verdict, ...]
    #: Whether the baseline has it too: each of its checks failed there, and as dangerously.
    is_known: bool
    #: Whether it makes the run fail.
    fails: bool

    @property
    def is_asked(self) -> bool:
        """Whether the run asks about it."""
        return bool(self.asked)

    @property
    def is_question(self) -> bool:
        """Whether only the author can say if it is right."""
        return self.found.rank is Status.QUESTION


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The meaning of a report for a run; every format renders this."""

    report: Report
    #: By spec, then what is asked about, then the most dangerous first.
    findings: tuple[Judged, ...]
    #: Whether there is an earlier record with which it was compared.
    has_baseline: bool = False
    #: The failures of the baseline that are none any more; what was not asked again is not among them.
    mended: tuple[Verdict, ...] = ()
    #: What was held against the report.
    bar: Bar = Bar()

    @property
    def fails(self) -> bool:
        """Whether the run fails."""
        return any(judged.fails for judged in self.findings)

    @property
    def failures(self) -> tuple[Verdict, ...]:
        """The verdicts that make the run fail, and those that follow from them."""
        failing = [judged.found for judged in self.findings if judged.fails]
        laws = {(found.verdict.spec, law) for found in failing for law in (*found.laws, *found.follows)}
        return tuple(verdict for verdict in self.report.violations if (verdict.spec, verdict.law) in laws)

    @property
    def is_unsaid(self) -> bool:
        """Whether a limit, or a fault of the spec, kept the run from saying what was asked; also beside a baseline."""
        unsaid = (v for v in self.report.verdicts if v.finding.is_cut_off or v.finding.is_fault)
        return any(is_asked(verdict, self.report, self.bar) for verdict in unsaid)


def judge(report: Report, bar: Bar | None = None, baseline: Report | None = None) -> Judgement:
    """Return what a report means for a run.

    Args:
        report: what was found.
        bar: what fails.
        baseline: an earlier report; what it has too does not fail.
    """
    bar = bar or Bar()
    before = {} if baseline is None else {verdict.cell: verdict for verdict in baseline.violations}
    judged = []
    for found in findings(report):
        is_known = bool(before) and all(_was_there(verdict, before) for verdict in found.verdicts)
        asked = [verdict for verdict in found.verdicts if is_asked(verdict, report, bar)]
        if asked:
            found.verdict = _best(asked, found.verdict, report)
        fails = bool(asked) and not is_known and _is_dangerous(found, report, bar)
        judged.append(Judged(found=found, asked=tuple(asked), is_known=is_known, fails=fails))
    specs = list(dict.fromkeys(one.found.verdict.spec for one in judged))
    judged.sort(key=lambda one: (specs.index(one.found.verdict.spec), not one.is_asked))
    now = {verdict.cell: verdict.finding for verdict in report.verdicts}
    mended = [v for cell, v in before.items() if cell in now and not now[cell].is_told]
    return Judgement(
        report=report, findings=tuple(judged), has_baseline=baseline is not None, mended=tuple(mended), bar=bar
    )


def is_asked(verdict: Verdict, report: Report, bar: Bar) -> bool:
    """Whether a run asks about what a verdict says.

    Unless scopes are named: about training; about all else that the spec promises or refuses, or that every spec does,
    as to keep no memory, which an audit does not ask about; and about a silently wrong result under `torch.compile`,
    which many users turn on without a word to the author; in an audit, about one under `vmap` or in forward mode where
    the Function writes a rule for it.
    """
    law, sheet = report.laws.get(verdict.law, {}), report.sheets.get(verdict.spec, {})
    scope = scope_of(verdict.law, report.laws)
    scopes = bar.scopes or report.scopes
    if scopes:
        return scope in scopes
    if scope is Scope.TRAINING or (scope is Scope.COMPILE and rank_of(verdict) is Rank.WRONG):
        return True
    if promise := law.get("promise"):
        if promise in sheet.get("rules", ()) and rank_of(verdict) is Rank.WRONG:
            return True
        return sheet.get("supports", {}).get(promise, True) is not None
    return scope is not Scope.MEMORY or not sheet.get("audited")


def _best(asked: Sequence[Verdict], best: Verdict, report: Report) -> Verdict:
    """Return the verdict asked about that shows a cause best: the most dangerous, training first."""
    return min(
        asked,
        key=lambda v: (ORDER.index(rank_of(v)), scope_of(v.law, report.laws) is not Scope.TRAINING, v is not best),
    )


def _is_dangerous(found: Found, report: Report, bar: Bar) -> bool:
    if found.rank is Status.QUESTION:
        return bar.strict
    if found.rank is Status.VACUOUS and report.sheets.get(found.verdict.spec, {}).get("audited"):
        return bar.strict  # the calls of an audit are whatever was at hand
    return isinstance(found.rank, Status) or found.rank in ORDER[: ORDER.index(bar.fail_on) + 1]


def _was_there(verdict: Verdict, before: Mapping[tuple[str, str, str], Verdict]) -> bool:
    """Whether a check failed before, and as dangerously."""
    was = before.get(verdict.cell)
    return was is not None and ORDER.index(rank_of(was)) <= ORDER.index(rank_of(verdict))
