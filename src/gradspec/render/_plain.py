"""A report as text without colour: its table, and beneath it each finding, a line for each spec, and remarks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from gradspec.findings import judge, use_of
from gradspec.render._remarks import remarks
from gradspec.render._table import tables
from gradspec.render._text import baseline_lines, finding_text, summary_lines

if TYPE_CHECKING:
    from gradspec.findings import Judgement
    from gradspec.report import Report

#: How a terminal shows a line: "heading" for what a group of findings is about, "headline" for a finding.
Style = Callable[[str, str], str]


def plain(report: Report) -> str:
    """Return what `gradspec check` prints of a report."""
    return "\n".join((*tables(report), without_table(report)))


def without_table(report: Report) -> str:
    """Return the findings, the summary and the remarks of a report."""
    judgement = judge(report)
    return "\n".join((*finding_blocks(judgement), *ending(judgement)))


def finding_blocks(
    judgement: Judgement, *, details: bool = False, style: Style = lambda text, _: text
) -> Iterator[str]:
    """Yield the text of each finding that no baseline has, below a heading for each use."""
    last = ""
    for found in (judged.found for judged in judgement.findings if not judged.is_known):
        use = use_of(found.verdict.law, judgement.report.laws)
        if use != last:
            yield style(f"{use[:1].upper()}{use[1:]}\n", "heading")
        last = use
        headline, _, rest = finding_text(found, details=details).partition("\n")
        yield f"{style(headline, 'headline')}\n{rest}\n"


def ending(judgement: Judgement, *, recorded: str = "") -> Iterator[str]:
    """Yield a line for each spec, what a baseline says, where it was measured, and remarks."""
    yield from summary_lines(judgement.report)
    yield from baseline_lines(judgement) if judgement.has_baseline else ()
    yield from filter(None, [recorded])
    for _, remark in remarks(judgement.report):
        yield f"\n{remark}"
