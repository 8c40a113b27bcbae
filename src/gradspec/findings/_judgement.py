"""Which findings make a run fail, which of them an earlier record has too, and what is mended since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gradspec.findings._findings import ORDER, Found, findings, rank_of
from gradspec.law import Rank, Status, Verdict
from gradspec.report import Report


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A finding, and what it means for the run."""

    found: Found
    #: Whether the baseline has it too: each of its checks failed there, and as dangerously.
    is_known: bool
    #: Whether it makes the run fail.
    fails: bool


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What a report means for a run; every format renders this."""

    report: Report
    #: By spec, then the most dangerous first.
    findings: tuple[Judged, ...]
    #: Whether there is an earlier record with which it was compared.
    has_baseline: bool = False
    #: The failures of the baseline that are none any more; what was not asked again is not among them.
    mended: tuple[Verdict, ...] = ()

    @property
    def fails(self) -> bool:
        """Whether the run fails."""
        return any(judged.fails for judged in self.findings)

    @property
    def is_cut_off(self) -> bool:
        """Whether a limit kept anything from being measured; then the run says too little, also beside a baseline."""
        return any(verdict.finding.is_cut_off for verdict in self.report.verdicts)


def judge(report: Report, fail_on: Rank = Rank.LIMIT, baseline: Report | None = None) -> Judgement:
    """Return what a report means for a run.

    Args:
        report: what was found.
        fail_on: the least dangerous rank that fails; what could not be judged always does.
        baseline: an earlier report; what it has too does not fail.
    """
    dangerous = ORDER[: ORDER.index(fail_on) + 1]
    before = {} if baseline is None else {_cell(verdict): verdict for verdict in baseline.failures}
    judged = []
    for found in findings(report):
        is_known = all(_was_there(verdict, before) for verdict in found.verdicts)
        counts = isinstance(found.rank, Status) or found.rank in dangerous
        judged.append(Judged(found=found, is_known=is_known, fails=counts and not is_known))
    now = {_cell(verdict): verdict.finding for verdict in report.verdicts}
    mended = [v for cell, v in before.items() if cell in now and not now[cell].is_failure]
    return Judgement(report=report, findings=tuple(judged), has_baseline=baseline is not None, mended=tuple(mended))


def _was_there(verdict: Verdict, before: Mapping[tuple[str, str, str], Verdict]) -> bool:
    """Whether a check failed before, and as dangerously."""
    was = before.get(_cell(verdict))
    return was is not None and ORDER.index(rank_of(was)) <= ORDER.index(rank_of(verdict))


def _cell(verdict: Verdict) -> tuple[str, str, str]:
    return verdict.spec, verdict.law, verdict.case
