"""The directive `gradspec-map`: a value over two axes as an SVG, and some of its numbers in a table beside it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from docutils import nodes

from gradspec.sphinx_ext.page._nodes import Cell
from gradspec_lab.sphinx._figure import Drawing, FigureDirective, place, spread
from gradspec_lab.sphinx.drawing._map_record import map_of
from gradspec_lab.sphinx.drawing._map_svg import map_svg


class MapDirective(FigureDirective):
    """Render a map: the path of the record, relative to the page, then the name; the content is the caption."""

    def draw(self, record: Mapping[str, Any], name: str) -> Drawing:
        """Return the map, and a table that lies as the map does: the highest row first."""
        shown = map_of(record, name)
        columns = spread(shown.columns)
        head: list[Cell] = [
            nodes.Text(f"{shown.y.label} (down), {shown.x.label} (across)"),
            *(place(x) for x in columns),
        ]
        rows: list[list[Cell]] = [
            [place(y), *(f"{shown.at(x, y):{shown.value.format}}" for x in columns)]
            for y in reversed(spread(shown.rows))
        ]
        return Drawing(title=shown.title, svg=partial(map_svg, shown), head=head, rows=rows)
