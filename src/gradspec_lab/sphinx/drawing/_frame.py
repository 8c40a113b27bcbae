"""The frame of every drawing with two axes: the element with its words, the axes, room for their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from gradspec_lab.sphinx.drawing._plot_record import Axis
from gradspec_lab.sphinx.drawing._plot_scale import Scale, tick_label

WIDTH = 480
LEFT, RIGHT, BOTTOM = 54, 14, 42
END = WIDTH - RIGHT
#: About how wide a character is.
CHARACTER = 7


@dataclass(frozen=True, kw_only=True)
class Frame:
    """Where the axes are: from `LEFT` to `END`, and from the top to the base."""

    top: float
    base: float
    x: Scale
    y: Scale

    @property
    def height(self) -> float:
        """The height of the drawing."""
        return self.base + BOTTOM

    def across(self, value: float) -> float:
        """Return the place of a value on the horizontal axis."""
        return LEFT + (END - LEFT) * self.x(value)

    def up(self, value: float) -> float:
        """Return the place of a value on the vertical axis."""
        return self.base - (self.base - self.top) * self.y(value)

    def opened(self, name: str, title: str, described: str) -> Iterator[str]:
        """Yield the tag of the element, which the caller closes, and the words that a screen reader says.

        Args:
            name: of the element; it is unique on the page.
            title: what is shown, in a few words.
            described: what can be seen in it.
        """
        yield (
            f'<svg class="gradspec-plot" viewBox="0 0 {WIDTH} {self.height}" role="img" id="{name}-plot" '
            f'aria-labelledby="{name}-title {name}-desc" xmlns="http://www.w3.org/2000/svg">'
        )
        yield f'<title id="{name}-title" class="nohighlight">{escape(title)}</title>'
        yield f'<desc id="{name}-desc" class="nohighlight">{escape(described)}</desc>'

    def axes(self, x: Axis, y: Axis, *, grid: bool) -> Iterator[str]:
        """Yield the ticks, their numbers, and the labels; the vertical one lies above its axis, to be read.

        Args:
            x: the horizontal axis.
            y: the vertical axis.
            grid: draw a line across at each number of the vertical axis, and not a frame with ticks.
        """
        style, start, end = ("grid", LEFT, END) if grid else ("tick", LEFT - 5, LEFT)
        before = start - (6 if grid else 3)
        for value in self.y.ticks:
            at, label = self.up(value), tick_label(value, y)
            yield f'<line class="gradspec-{style}" x1="{start}" y1="{at:.1f}" x2="{end}" y2="{at:.1f}"/>'
            yield f'<text x="{before}" y="{at + 4:.1f}" text-anchor="end">{label}</text>'
        for value in self.x.ticks:
            at = self.across(value)
            yield f'<line class="gradspec-tick" x1="{at:.1f}" y1="{self.base}" x2="{at:.1f}" y2="{self.base + 5}"/>'
            yield number(at, self.base + 18, tick_label(value, x))
        if grid:
            yield f'<line class="gradspec-tick" x1="{LEFT}" y1="{self.base}" x2="{END}" y2="{self.base}"/>'
        yield f'<text x="{(LEFT + END) / 2}" y="{self.height - 6}" text-anchor="middle">{escape(x.label)}</text>'
        yield f'<text x="0" y="{self.top - 14}">{escape(y.label)}</text>'


def number(at: float, y: float, label: str) -> str:
    """Return a number below a place; a long one below the last place would be cut off at the edge."""
    return f'<text x="{min(at, WIDTH - CHARACTER * len(label) / 2):.1f}" y="{y}" text-anchor="middle">{label}</text>'
