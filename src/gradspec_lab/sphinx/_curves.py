"""The directive `gradspec-curves`: a figure of a record as an SVG, and its numbers in a table beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives

from gradspec.sphinx_ext.page._nodes import Cell
from gradspec_lab.sphinx._figure import Drawing, FigureDirective, place, spread
from gradspec_lab.sphinx.drawing._plot_record import Line, figure_of
from gradspec_lab.sphinx.drawing._plot_svg import svg


class CurvesDirective(FigureDirective):
    """Render lines over one pair of axes.

    The option `log` makes the vertical axis logarithmic, and `zero` lets it show 0.
    """

    option_spec: ClassVar[dict[str, Callable[[str], object]]] = {"log": directives.flag, "zero": directives.flag}

    def draw(self, record: Mapping[str, Any], name: str) -> Drawing:
        """Return the lines, and a column of numbers for each."""
        figure = figure_of(record, name, log="log" in self.options, zero="zero" in self.options)
        head: list[Cell] = [figure.x.label, *(nodes.Text(line.label) for line in figure.lines)]
        rows: list[list[Cell]] = [
            [place(x), *(_cell(line, x, figure.y.format) for line in figure.lines)]
            for x in spread(sorted({value for line in figure.lines for value in line.x}))
        ]
        runs = max(len(line.runs) for line in figure.lines)
        note = f"Mean of {runs} runs, and in brackets and as a band the lowest and the highest of them."
        return Drawing(
            title=figure.title, svg=partial(svg, figure), head=head, rows=rows, note=note if runs > 1 else ""
        )


def _cell(line: Line, x: float, form: str) -> Cell:
    if x not in line.x:
        return ""
    i = line.x.index(x)
    if len(line.runs) == 1:
        return f"{line.mean[i]:{form}}"
    return f"{line.mean[i]:{form}} ({line.low[i]:{form}} to {line.high[i]:{form}})"
