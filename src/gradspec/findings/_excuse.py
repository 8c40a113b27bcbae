"""Excuse a violation that follows from another: one verdict shows a cause, and what else it breaks is beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradspec.findings._judgement import Judged, Judgement
    from gradspec.law import Verdict


def by_cell(judgement: Judgement) -> dict[tuple[str, str, str], Judged]:
    """Return the finding that each violation is a part of, or follows from."""
    return {
        verdict.cell: judged
        for judged in judgement.findings
        for verdict in (*judged.found.verdicts, *judged.found.followers)
    }


def excuse(judged: Judged, verdict: Verdict) -> str:
    """Return why a violation is not a failure of its own; empty for the one that shows a cause that fails."""
    shown = judged.found.verdict
    if judged.is_known:
        return "in the baseline"
    if not judged.is_asked:
        return "not asked about"
    if not judged.fails:
        return "a question" if judged.is_question else "not dangerous enough to fail"
    if verdict.cell == shown.cell:
        return ""
    root = f"`{shown.law}`" if shown.case == verdict.case else f"`{shown.law}` on case `{shown.case}`"
    is_follower = any(verdict.cell == follower.cell for follower in judged.found.followers)
    return f"follows from {root}" if is_follower else f"the cause of {root}"
