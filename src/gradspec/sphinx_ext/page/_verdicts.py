"""Verdicts in words: a sign that needs no colour, the status, and how many cases it is the status of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from docutils import nodes

from gradspec.findings import rank_of, rank_words
from gradspec.findings._findings import standing
from gradspec.law import Status, Verdict
from gradspec.render import SIGNS, brief_message, counts, words
from gradspec.render._text import Standing
from gradspec.sphinx_ext.page._nodes import paragraph, span

#: How many cases a cell names before it counts the rest.
SHOWN = 4


def overall(verdicts: Iterable[Verdict]) -> Standing:
    """Return the one standing of many cases: the most alarming one, and `not measured` before `holds`."""
    return next(iter(counts(verdicts)), Status.NOT_MEASURED)


def badge(status: Standing, text: str = "") -> nodes.inline:
    """Return the sign and the word of a status."""
    return span(f"{SIGNS[status]} {text or words(status)}", "gradspec-status", f"gradspec-{status.value}")


def summary(verdicts: Sequence[Verdict], *, stale: bool = False, brief: bool = False) -> list[nodes.Node]:
    """Return the cell of a table: the overall status, how many cases have it, and what the others say.

    Args:
        verdicts: of one spec under one law.
        stale: whether they are about an older source.
        brief: cut what a message quotes, as where it is about a published implementation.
    """
    if not verdicts:
        return [paragraph(badge(Status.NOT_MEASURED))]
    if stale:
        return [paragraph(badge(Status.NOT_MEASURED)), paragraph("recorded for an older source")]
    status = overall(verdicts)
    numbers = counts(verdicts)
    if len(verdicts) == 1:
        lines = [paragraph(badge(status))]
    else:
        every = numbers[status] == len(verdicts)
        share = f"all {len(verdicts)}" if every else f"{numbers[status]} of {len(verdicts)}"
        lines = [paragraph(badge(status), f" in {share} cases")]
    if status is not Status.HOLDS or len(numbers) > 1:
        lines += [paragraph(line, classes=["gradspec-detail"]) for line in details(verdicts, brief=brief)]
    return list(lines)


def details(verdicts: Iterable[Verdict], *, brief: bool = False) -> list[str]:
    """Return a line for each thing that was found other than that the law holds, with its cases."""
    groups: dict[tuple[str, str], list[str]] = {}
    for verdict in verdicts:
        if verdict.status is not Status.HOLDS:
            message = brief_message(verdict.finding.message) if brief else verdict.finding.message
            said = [words(standing(verdict))]
            if verdict.finding.rank and standing(verdict) is verdict.status:
                said.append(rank_words(rank_of(verdict)))
            groups.setdefault((", ".join(said), message), []).append(verdict.case)
    return [
        f"{said}: {_listed(list(dict.fromkeys(cases)))}{f' ({message})' if message else ''}"
        for (said, message), cases in groups.items()
    ]


def _listed(cases: list[str]) -> str:
    if len(cases) <= SHOWN:
        return ", ".join(cases)
    return f"{', '.join(cases[: SHOWN - 1])} and {len(cases) - SHOWN + 1} more"
