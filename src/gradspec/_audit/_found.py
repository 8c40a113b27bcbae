"""The result of an audit: verdicts, a proposed spec and remarks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gradspec.law import Verdict
from gradspec.render._remarks import remarks
from gradspec.report import Report


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The result of an audit."""

    #: The verdicts of the laws that need no spec, and in the sheet of the function what was seen beside them.
    report: Report
    #: A spec of the function, as Python text, to be completed and pasted; empty where none can be written.
    proposal: str
    #: Why no spec is proposed, or what there is to know of the one that is, a sentence each.
    remarks_of_proposal: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return what the command line prints: the report with its remarks, then the proposal."""
        return "\n\n".join(filter(None, (str(self.report).rstrip(), self.proposal.rstrip())))

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on measurements beside the laws and on the proposal, a sentence each."""
        return (*(remark for _, remark in remarks(self.report)), *self.remarks_of_proposal)


def with_remarks(report: Report, spec: str, said: Iterable[str], *, rules: Sequence[str] = ()) -> Report:
    """Return a report whose sheet of a function says that it is an audit, and what was seen beside the verdicts.

    Args:
        report: the report.
        spec: the name of the function.
        said: the remarks.
        rules: the fields of `Supports` for which it writes a rule.
    """
    sheet = {**report.sheets[spec], "audited": True, "remarks": list(said), "rules": list(rules)}
    return replace(report, sheets={**report.sheets, spec: sheet})


def calls_that_show(verdict: Verdict, calls: Iterable[str]) -> list[str]:
    """Return the calls by which a verdict is repeated: its own, and after it all others where they show it together."""
    is_of_several = "called before" in verdict.finding.details
    return [verdict.case, *(call for call in calls if is_of_several and call != verdict.case)]
