"""A figure as SVG: text is text, colours are the page's, each line has its own dash, and words say it again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from gradspec.sphinx_ext.drawing._plot_record import Figure, Line
from gradspec.sphinx_ext.drawing._plot_scale import Scale, scale, tick_label

WIDTH, HEIGHT = 480, 310
LEFT, RIGHT, BOTTOM = 54, 14, 42
#: Height of a line of the legend, and of the label of the vertical axis below it.
ROW = 18
#: The style sheet has so many colours and dashes; more lines begin anew.
STYLES = 5
#: About how wide a character of the legend is.
CHARACTER = 7
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
    top = rows * ROW + ROW
    height = HEIGHT + (rows - 1) * ROW

    def across(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * x(value)

    def up(value: float) -> float:
        return height - BOTTOM - (height - BOTTOM - top - 8) * y(value)

    def points(xs: Iterable[float], ys: Iterable[float]) -> str:
        return " ".join(f"{across(a):.1f},{up(b):.1f}" for a, b in zip(xs, ys, strict=True))

    parts = [
        f'<svg class="gradspec-plot" viewBox="0 0 {WIDTH} {height}" role="img" id="{name}-plot" '
        f'aria-labelledby="{name}-title {name}-desc" xmlns="http://www.w3.org/2000/svg">',
        f'<title id="{name}-title" class="nohighlight">{escape(figure.title)}</title>',
        f'<desc id="{name}-desc" class="nohighlight">{escape(described(figure))}</desc>',
        *_axes(figure, x, y, [across(v) for v in x.ticks], [up(v) for v in y.ticks], top, height),
        *legend,
    ]
    for i, line in enumerate(figure.lines):
        style = f"gradspec-style-{i % STYLES + 1}"
        if len(line.runs) > 1:
            around = points((*line.x, *reversed(line.x)), (*line.high, *reversed(line.low)))
            parts.append(f'<polygon class="gradspec-band {style}" points="{around}"/>')
        parts.append(f'<polyline class="gradspec-line {style}" points="{points(line.x, line.mean)}"/>')
        if len(line.x) <= MARKED:
            marks = ((across(a), up(b)) for a, b in zip(line.x, line.mean, strict=True))
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


def _axes(
    figure: Figure, x: Scale, y: Scale, xs: list[float], ys: list[float], top: float, height: float
) -> Iterator[str]:
    """Yield the grid, the numbers at the ticks, and the labels; the vertical one lies above its axis, to be read."""
    base, end = height - BOTTOM, WIDTH - RIGHT
    for at, value in zip(ys, y.ticks, strict=True):
        yield f'<line class="gradspec-grid" x1="{LEFT}" y1="{at:.1f}" x2="{end}" y2="{at:.1f}"/>'
        label = tick_label(value, figure.y)
        yield f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{label}</text>'
    for at, value in zip(xs, x.ticks, strict=True):
        yield f'<line class="gradspec-tick" x1="{at:.1f}" y1="{base}" x2="{at:.1f}" y2="{base + 5}"/>'
        label = tick_label(value, figure.x)
        # A long one under the last tick would be cut off at the edge.
        middle = min(at, WIDTH - CHARACTER * len(label) / 2)
        yield f'<text x="{middle:.1f}" y="{base + 18}" text-anchor="middle">{label}</text>'
    yield f'<line class="gradspec-tick" x1="{LEFT}" y1="{base}" x2="{end}" y2="{base}"/>'
    yield f'<text x="{(LEFT + end) / 2}" y="{height - 6}" text-anchor="middle">{escape(figure.x.label)}</text>'
    yield f'<text x="0" y="{top - 6}">{escape(figure.y.label)}</text>'


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
