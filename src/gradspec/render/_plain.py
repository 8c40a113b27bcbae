"""A report as text without colour: its table, and beneath it each finding, a line for each spec, and remarks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from gradspec._one_line import for_log
from gradspec.findings import Judged, judge, scope_of, sentence
from gradspec.render._remarks import remarks
from gradspec.render._table import tables
from gradspec.render._text import baseline_lines, finding_text, line, question, summary_lines

if TYPE_CHECKING:
    from gradspec.findings import Judgement
    from gradspec.report import Report

#: How a terminal shows a line: "heading" for what a group of findings is about, "headline" for a finding.
Style = Callable[[str, str], str]


def plain(report: Report) -> str:
    """Return what `gradspec check` prints of a report."""
    return for_log("\n".join((*tables(report), without_table(report))))


def without_table(report: Report) -> str:
    """Return the findings, the summary and the remarks of a report."""
    return _without_table(judge(report))


def for_an_exception(report: Report) -> str:
    """Return the same below a line that says the first of it: of some texts a reader is shown no more."""
    judgement = judge(report)
    first = next((one for one in judgement.findings if one.fails or one.is_question), None)
    head = "" if first is None else f"{first.found.verdict.spec}: {(line if first.fails else question)(first.found)}"
    return for_log(f"{head}\n\n{_without_table(judgement)}")


def _without_table(judgement: Judgement) -> str:
    return for_log("\n".join((*finding_blocks(judgement), *ending(judgement))))


def finding_blocks(
    judgement: Judgement, *, details: bool = False, style: Style = lambda text, _: text
) -> Iterator[str]:
    """Yield what no baseline has: the text of each finding that fails, below a heading for each use; a line for others.

    With `details`, all that is asked about is said in full.
    """
    last = ""
    new = [judged for judged in judgement.findings if not judged.is_known]
    asked = [judged for judged in new if judged.is_asked and not judged.is_question]
    for found in (judged.found for judged in asked if judged.fails or details):
        use = scope_of(found.verdict.law, judgement.report.laws).words
        if use != last:
            yield style(f"{use[:1].upper()}{use[1:]}\n", "heading")
        last = use
        headline, _, rest = finding_text(found, details=details).partition("\n")
        yield f"{style(headline, 'headline')}\n{rest}\n"
    several = len(judgement.report.sheets) > 1

    def of_spec(said: str, one: Judged) -> str:
        return f"{one.found.verdict.spec}: {said}" if several else said

    passed = [of_spec(line(one.found), one) for one in asked if not (one.fails or details)]
    questions = [of_spec(question(one.found), one) for one in new if one.is_question and one.is_asked]
    unasked = [of_spec(line(one.found, why=True), one) for one in new if not one.is_asked]
    yield from _block("Does not fail the run", passed, style)
    yield from _block("Questions", questions, style)
    yield from _block("Not asked about", unasked, style)


def _block(heading: str, lines: Sequence[str], style: Style) -> Iterator[str]:
    if lines:
        yield style(f"{heading}\n", "heading")
        yield "".join(f"  {said}\n" for said in lines)


def ending(judgement: Judgement, *, recorded: str = "") -> Iterator[str]:
    """Yield a line for each spec, what a baseline says, where it was measured, remarks, and what it comes to."""
    yield from summary_lines(judgement.report)
    yield from baseline_lines(judgement) if judgement.has_baseline else ()
    for _, remark in remarks(judgement.report):
        yield f"\n{remark}"
    if said := sentence(judgement):
        yield f"\n{said}"
    yield from filter(None, [recorded])
