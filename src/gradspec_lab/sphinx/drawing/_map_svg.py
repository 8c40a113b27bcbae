"""A map as SVG: bands of one hue that grow darker, or lighter on a dark page, and lines between them with numbers."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import pairwise
from math import dist

from gradspec_lab.sphinx.drawing._frame import CHARACTER, END, LEFT, Frame, number
from gradspec_lab.sphinx.drawing._map_contour import Point, regions
from gradspec_lab.sphinx.drawing._map_record import Map
from gradspec_lab.sphinx.drawing._plot_scale import Scale, scale, tick_label

#: The style sheet has so many shades, from the lowest band to the highest.
SHADES = 8
#: The plot is so high, below a legend of this height.
SIDE, TOP = 300, 82
BASE = TOP + SIDE
#: A line that is shorter within the plot has no number of its own.
SHORTEST = 40
#: Where along a line its number may be, the best place first.
PLACES = (0.5, 0.38, 0.62, 0.26, 0.74, 0.15, 0.85)


def map_svg(shown: Map, name: str) -> str:
    """Return a map as an SVG element.

    Args:
        shown: what to draw.
        name: of the element; it is unique on the page.
    """
    frame = frame_of(shown)
    value = scale(shown.value, (v for row in shown.values for v in row), snug=False)
    shades = [shade(i, len(value.ticks) - 1) for i in range(len(value.ticks) - 1)]
    parts = [
        *frame.opened(name, shown.title, described(shown)),
        *_legend(shown, value, shades),
        f'<rect class="{shades[0]}" x="{LEFT}" y="{TOP}" width="{END - LEFT}" height="{SIDE}"/>',
        *_bands(shown, frame, value, shades),
        f'<rect class="gradspec-frame" x="{LEFT}" y="{TOP}" width="{END - LEFT}" height="{SIDE}"/>',
        *frame.axes(shown.x, shown.y, grid=False),
    ]
    return "\n".join([*parts, "</svg>"])


def shade(band: int, bands: int) -> str:
    """Return the class of a band: the lowest and the highest have the ends of the scale of colours."""
    return f"gradspec-shade-{1 + round(band * (SHADES - 1) / max(bands - 1, 1))}"


def described(shown: Map) -> str:
    """Return in words what a map shows: its axes, its lowest and highest value, and its corners."""
    form = shown.value.format
    points = [(shown.at(x, y), x, y) for y in shown.rows for x in shown.columns]

    def said(x: float, y: float) -> str:
        return f"{shown.at(x, y):{form}} at {x:g}, {y:g}"

    corners = "; ".join(
        said(x, y) for y in (shown.rows[0], shown.rows[-1]) for x in (shown.columns[0], shown.columns[-1])
    )
    (_, *lowest), (_, *highest) = min(points), max(points)
    return (
        f"{shown.value.label} over {shown.x.label} (across) and {shown.y.label} (up). "
        f"Lowest: {said(*lowest)}. Highest: {said(*highest)}. Corners: {corners}."
    )


def frame_of(shown: Map) -> Frame:
    """Return where the axes of a map are."""
    x, y = scale(shown.x, shown.columns, snug=True), scale(shown.y, shown.rows, snug=True)
    return Frame(top=TOP, base=BASE, x=x, y=y)


def _bands(shown: Map, frame: Frame, value: Scale, shades: list[str]) -> Iterator[str]:
    """Yield what lies at each level or above, from the lowest level up, and then the numbers of the levels."""
    xs, ys = list(map(frame.across, shown.columns)), list(map(frame.up, shown.rows))
    values = [[value(v) for v in row] for row in shown.values]
    numbers: list[str] = []
    taken: list[Point] = []
    for level, style in zip(value.ticks[1:-1], shades[1:], strict=True):
        label = tick_label(level, shown.value)
        lines = regions(xs, ys, values, value(level))
        # In one path, so that a line within another one is a hole.
        d = "".join(f"M{' '.join(f'{a:.1f},{b:.1f}' for a, b in line)}Z" for line in lines)
        yield f'<path class="gradspec-contour {style}" fill-rule="evenodd" d="{d}"/>'
        for line in lines:
            if place := _place(_within(line), taken, CHARACTER * len(label) + 6):
                taken.append(place)
                x_at, y_at = f"{place[0]:.1f}", f"{place[1] + 4:.1f}"
                where = f'x="{x_at}" y="{y_at}" text-anchor="middle" paint-order="stroke"'
                text = f'<text class="gradspec-level" {where}>{label}</text>'
                numbers.append(text)
    yield from numbers


def _within(line: list[Point]) -> list[Point]:
    """Return the longest piece of a closed line that does not run along the edge of the plot."""

    def inner(a: Point, b: Point) -> bool:
        x, y = (a[0] + b[0]) / 2, (a[1] + b[1]) / 2
        return LEFT < x < END and TOP < y < BASE

    steps = list(pairwise([*line, line[0]]))
    start = next((i for i, step in enumerate(steps) if not inner(*step)), 0)
    pieces: list[list[Point]] = [[]]
    for a, b in (*steps[start:], *steps[:start]):
        if not inner(a, b):
            pieces.append([])
        else:
            pieces[-1] += [b] if pieces[-1] else [a, b]
    return max(pieces, key=_length)


def _length(line: list[Point]) -> float:
    return sum(dist(a, b) for a, b in pairwise(line))


def _place(line: list[Point], taken: list[Point], width: float) -> Point | None:
    """Return where along a line a number is that covers no other one, if it has room."""
    length = _length(line)
    for part in PLACES if length >= SHORTEST else ():
        gone = 0.0
        for a, b in pairwise(line):
            step = dist(a, b)
            if gone + step >= part * length > gone:
                t = (part * length - gone) / step
                found = (a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1]))
                if all(abs(found[0] - m) > width or abs(found[1] - n) > 16 for m, n in taken):
                    return found
            gone += step
    return None


def _legend(shown: Map, value: Scale, shades: list[str]) -> Iterator[str]:
    """Yield the bands as a strip, with the number at each bound, below what the numbers are."""
    yield f'<text x="0" y="14">{escape(shown.value.label)}</text>'
    width = (END - LEFT) / len(shades)
    for i, style in enumerate(shades):
        at = LEFT + i * width
        yield f'<rect class="gradspec-contour {style}" x="{at:.1f}" y="22" width="{width:.1f}" height="12"/>'
    for i, level in enumerate(value.ticks):
        yield number(LEFT + i * width, 47, tick_label(level, shown.value))
