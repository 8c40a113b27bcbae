"""The report of an optimization as a page: the curve of its scores, and the diff of each text."""

from __future__ import annotations

import difflib
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradspec.text.optim._report import Optimized

WIDTH, HEIGHT, EDGE = 640, 240, 32
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere}ins{text-decoration:none;background:#1a7f3733}"
    "del{text-decoration:line-through;background:#cf222e33}svg{max-width:100%;height:auto}"
)


def page(report: Optimized) -> str:
    """Return an HTML document that needs no other file and runs no script; every text in it is escaped."""
    diffs = "".join(
        f"<h2>{escape(role or 'parameter')}</h2>\n<pre>{_diff(before, after)}</pre>\n"
        for role, before, after in zip(report.roles, report.before, report.best, strict=True)
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>An optimization</title>\n'
        f"<style>{STYLE}</style></head>\n<body>\n<h1>An optimization</h1>\n{_curve(report)}\n"
        f"<pre>{escape(str(report))}</pre>\n{diffs}</body>\n</html>\n"
    )


def _diff(before: str, after: str) -> str:
    """Return both texts in one, line by line, with what went and what came marked."""
    lines = []
    for line in difflib.ndiff(before.splitlines(), after.splitlines()):
        sign, text = line[:2], escape(line[2:])
        if sign == "- ":
            lines.append(f"<del>- {text}</del>")
        elif sign == "+ ":
            lines.append(f"<ins>+ {text}</ins>")
        elif sign == "  ":
            lines.append(f"  {text}")
    return "\n".join(lines)


def _curve(report: Optimized) -> str:
    """Return the best score on validation after each step as a line, and each candidate's as a dot."""
    best = [report.validation_before.mean]
    dots = []
    for number, step in enumerate(report.steps, 1):
        if step.validation is not None:
            dots.append((number, step.validation, step.accepted))
        best.append(step.validation if step.accepted and step.validation is not None else best[-1])
    values = [*best, *(score for _, score, _ in dots)]
    low, high = min(values), max(values)
    span, steps = (high - low) or 1.0, max(1, len(report.steps))

    def at(number: int, score: float) -> tuple[float, float]:
        x = EDGE + (WIDTH - 2 * EDGE) * number / steps
        return round(x, 1), round(HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * (score - low) / span, 1)

    line = " ".join(f"{x},{y}" for x, y in (at(number, score) for number, score in enumerate(best)))
    circles = "".join(
        '<circle cx="{}" cy="{}" r="4" fill="{}" stroke="currentColor"/>'.format(
            *at(number, score), "currentColor" if accepted else "none"
        )
        for number, score, accepted in dots
    )
    said = f"The score on validation over {len(report.steps)} steps, from {best[0]:.3f} to {best[-1]:.3f}"
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{said}"><title>{said}</title>'
        f'<polyline points="{line}" fill="none" stroke="currentColor" stroke-width="2"/>{circles}'
        f'<text x="4" y="{HEIGHT - EDGE + 4}" font-size="12" fill="currentColor">{low:.2f}</text>'
        f'<text x="4" y="{EDGE + 4}" font-size="12" fill="currentColor">{high:.2f}</text></svg>'
    )
