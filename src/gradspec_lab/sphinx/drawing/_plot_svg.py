"""A figure as SVG: text is text, colours are the page's, each line has its own dash, and words say it again."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from gradspec_lab.sphinx.drawing._frame import BOTTOM, CHARACTER, WIDTH, Frame
from gradspec_lab.sphinx.drawing._plot_record import Figure, Line
from gradspec_lab.sphinx.drawing._plot_scale import scale

HEIGHT = 310
#: Height of a line of the legend, and of the label of the vertical axis below it.
ROW = 18
#: The style sheet has so many colours and dashes; more lines begin anew.
STYLES = 5
#: Lines with at most so many values show where each one is.
MARKED = 16


def svg(figure: Figure, name: str) -> str:
    """Return a figure as an SVG element.

    Args:
        figure: what to draw.
        name: of the element; it is unique on the page.
    """
    x = scale(figure.x, (value for line in figure.lines for value in line.x), snug=True)
    shown = [value for line in figure.lines for value in (*line.low, *line.high)]
    y = scale(figure.y, [*shown, 0.0] if figure.y.zero else shown, snug=False)
    legend, rows = _legend(figure.lines)
    frame = Frame(top=rows * ROW + ROW + 8, base=HEIGHT + (rows - 1) * ROW - BOTTOM, x=x, y=y)

    def points(xs: Iterable[float], ys: Iterable[float]) -> str:
        return " ".join(f"{frame.across(a):.1f},{frame.up(b):.1f}" for a, b in zip(xs, ys, strict=True))

    parts = [
        *frame.opened(name, figure.title, described(figure)),
        *frame.axes(figure.x, figure.y, grid=True),
        *legend,
    ]
    for i, line in enumerate(figure.lines):
        style = f"gradspec-style-{i % STYLES + 1}"
        if len(line.runs) > 1:
            around = points((*line.x, *reversed(line.x)), (*line.high, *reversed(line.low)))
            parts.append(f'<polygon class="gradspec-band {style}" points="{around}"/>')
        parts.append(f'<polyline class="gradspec-line {style}" points="{points(line.x, line.mean)}"/>')
        if len(line.x) <= MARKED:
            marks = ((frame.across(a), frame.up(b)) for a, b in zip(line.x, line.mean, strict=True))
            parts += (f'<circle class="gradspec-mark {style}" cx="{a:.1f}" cy="{b:.1f}" r="2.5"/>' for a, b in marks)
    return "\n".join([*parts, "</svg>"])


def described(figure: Figure) -> str:
    """Return in words what a figure shows: its axes, and where each line begins and ends."""
    kinds = {axis.label: " (logarithmic)" if axis.scale == "log" else "" for axis in (figure.x, figure.y)}
    lines = "; ".join(
        f"{line.label}: {line.mean[0]:{figure.y.format}} at {line.x[0]:g}, "
        f"{line.mean[-1]:{figure.y.format}} at {line.x[-1]:g}"
        for line in figure.lines
    )
    (x, x_kind), (y, y_kind) = ((axis.label, kinds[axis.label]) for axis in (figure.x, figure.y))
    return f"{y}{y_kind} over {x}{x_kind}. {lines}."


def _legend(lines: tuple[Line, ...]) -> tuple[list[str], int]:
    """Return the legend above the plot, and how many rows it takes."""
    parts: list[str] = []
    at, row = 0, 1
    for i, line in enumerate(lines):
        width = 34 + CHARACTER * len(line.label) + 12
        if at and at + width > WIDTH:
            at, row = 0, row + 1
        y, style = row * ROW - 10, f"gradspec-style-{i % STYLES + 1}"
        parts.append(f'<line class="gradspec-line {style}" x1="{at}" y1="{y}" x2="{at + 28}" y2="{y}"/>')
        parts.append(f'<text x="{at + 34}" y="{y + 4}">{escape(line.label)}</text>')
        at += width
    return parts, row
