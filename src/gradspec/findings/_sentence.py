"""One sentence that a person can act on: what is wrong, what would be, and what is asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gradspec._finding import QUESTIONS, UNSEEN, passing
from gradspec.findings._findings import scope_of
from gradspec.findings._judgement import Judgement, is_asked
from gradspec.law import Rank, Scope, Status

if TYPE_CHECKING:
    from gradspec.findings._judgement import Judged


def sentence(judgement: Judgement) -> str:
    """Return what a report comes to, in one sentence; empty if nothing was asked.

    "Wrong in training: `vjp`. With `torch.func`, which is not asked about: `vmap`. 1 question." of a report in which
    each of these was found.
    """
    if not judgement.report.verdicts:
        return ""
    asked = [judged for judged in judgement.findings if judged.is_asked and not judged.is_known]
    failing = [judged for judged in asked if judged.fails and not judged.is_question]
    wrong = [judged for judged in failing if isinstance(judged.found.rank, Rank)]
    unjudged = [judged for judged in failing if judged not in wrong]
    outside = [judged for judged in judgement.findings if not judged.is_asked]
    questions = sum(judged.found.verdict.finding.details.get(QUESTIONS, 1) for judged in asked if judged.is_question)
    new = " new" if judgement.has_baseline else ""
    parts = [f"Wrong in {_by_scope(wrong, judgement)}."] if wrong else []
    parts += [f"Could not be judged: {_by_scope(unjudged, judgement)}."] if unjudged else []
    if questions:
        parts.append(f"You are asked {questions} question{'s' * (questions != 1)}.")
    if not wrong and not unjudged:
        parts.append(f"Nothing{' else' * bool(questions)}{new} is wrong in what was asked about.")
    # What one law does not see in its calls, another one may.
    shown = {name for verdict in judgement.report.verdicts for name in verdict.finding.details.get("shows", ())}
    blind = [one.found.verdict.finding.details.get(UNSEEN) for one in asked if one.found.rank is Status.VACUOUS]
    if unseen := [name for name in blind if name and name not in shown]:
        parts.append(f"The calls do not show everything: {passing(unseen[0])}.")
    if refused := _refused(judgement):
        parts.append(f"Not promised, as it raises there: {refused}.")
    if outside:
        also = ",".join(
            scope for scope in Scope if scope in {scope_of(o.found.verdict.law, judgement.report.laws) for o in outside}
        )
        parts.append(f"Not asked about: {_by_scope(outside, judgement)}; `--scope {also}` asks.")
    return " ".join(parts)


def _refused(judgement: Judgement) -> str:
    """Return the laws that are asked about, and that no spec promises, since a call raises."""
    unpromised = (
        verdict
        for verdict in judgement.report.verdicts
        if verdict.status is Status.NOT_PROMISED and verdict.finding.details.get("raised")
    )
    return _said(
        (verdict.law for verdict in unpromised if is_asked(verdict, judgement.report, judgement.bar)), judgement
    )


def _by_scope(found: Iterable[Judged], judgement: Judgement) -> str:
    """Return the laws of findings, those of a scope together: "training (`vjp`, `layout`), `torch.func` (`vmap`)"."""
    return _said((verdict.law for judged in found for verdict in judged.asked or judged.found.verdicts), judgement)


def _said(laws: Iterable[str], judgement: Judgement) -> str:
    named: dict[Scope, dict[str, None]] = {}
    for law in laws:
        named.setdefault(scope_of(law, judgement.report.laws), {})[f"`{law}`"] = None
    return ", ".join(f"{scope.words} ({', '.join(names)})" for scope in Scope if (names := named.get(scope)))
