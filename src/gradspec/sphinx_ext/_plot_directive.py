"""The directive `gradspec-curves`: a figure of a record as an SVG, and its numbers in a table beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from gradspec.law import Status
from gradspec.report import RecordError
from gradspec.sphinx_ext._domain import note_object
from gradspec.sphinx_ext._nodes import Cell, paragraph, table
from gradspec.sphinx_ext._plot_record import Figure, Line, figure_of, read_experiment, sources_of
from gradspec.sphinx_ext._plot_svg import svg
from gradspec.sphinx_ext._records import source_files
from gradspec.sphinx_ext._staleness import is_current
from gradspec.sphinx_ext._verdicts import badge
from gradspec.sphinx_ext._warnings import GradspecWarning, warn_each_build

#: The table shows at most so many points, spread evenly, the first and the last among them.
ROWS = 6


class CurvesDirective(SphinxDirective):
    """Render a figure: the path of the record, relative to the page, then the name; the content is the caption.

    The option `log` makes the vertical axis logarithmic.
    """

    required_arguments = 2
    has_content = True
    option_spec: ClassVar[dict[str, Callable[[str], object]]] = {"log": directives.flag}

    def run(self) -> list[nodes.Node]:
        """Return the figure, its table and its provenance, or that nothing was measured."""
        relative, name = self.arguments
        path = Path(self.env.relfn2path(relative)[1])
        self.env.note_dependency(path)
        try:
            record = read_experiment(path)
            figure = figure_of(record, name, log="log" in self.options)
            sources = sources_of(record, path.parent)
        except RecordError as error:
            return self._not_measured(GradspecWarning.RECORD, f"figure {name!r}: {error}")
        except KeyError as error:
            return self._not_measured(GradspecWarning.UNKNOWN, f"{path}: {error.args[0]}")
        for source in sources:
            for file in source_files(source):
                self.env.note_dependency(file)
        stale = not all(map(is_current, sources))
        head, rows = _numbers(figure)
        facts = " ".join(_facts(record.get("provenance", {}), figure, stale=stale))
        shown = self._figure(figure, f"{path.stem}-{name}")
        return [
            note_object(self, "record", f"{path.stem} {name}", shown),
            shown,
            table(head, rows, "gradspec-numbers"),
            paragraph(facts, classes=["gradspec-detail"]),
        ]

    def _figure(self, figure: Figure, name: str) -> nodes.figure:
        ids = self.state.document.ids
        wanted = nodes.make_id(name)
        unique = next(i for i in (wanted, *(f"{wanted}-{n}" for n in range(2, len(ids) + 3))) if i not in ids)
        content = self.parse_content_to_nodes()
        words = content[0].children if content and isinstance(content[0], nodes.paragraph) else []
        caption = nodes.caption("", "", *(words or [nodes.Text(figure.title)]))
        made = nodes.figure("", nodes.raw("", svg(figure, unique), format="html"), caption, ids=[unique])
        made["classes"].append("gradspec-figure")
        self.state.document.set_id(made)
        if rest := content[1:]:
            made += nodes.legend("", *rest)
        return made

    def _not_measured(self, kind: GradspecWarning, message: str) -> list[nodes.Node]:
        warn_each_build(self, kind, message)
        return [paragraph(badge(Status.NOT_MEASURED)), *self.parse_content_to_nodes()]


def _numbers(figure: Figure) -> tuple[list[Cell], Iterator[list[Cell]]]:
    """Return the head of the table of a figure, and its rows."""
    every = sorted({value for line in figure.lines for value in line.x})
    count = min(ROWS, len(every))
    chosen = [every[round(i * (len(every) - 1) / max(count - 1, 1))] for i in range(count)]
    head: list[Cell] = [figure.x.label, *(nodes.Text(line.label) for line in figure.lines)]
    return head, ([f"{x:g}", *(_cell(line, x, figure.y.format) for line in figure.lines)] for x in chosen)


def _cell(line: Line, x: float, form: str) -> Cell:
    if x not in line.x:
        return ""
    i = line.x.index(x)
    if len(line.runs) == 1:
        return f"{line.mean[i]:{form}}"
    return f"{line.mean[i]:{form}} ({line.low[i]:{form}} to {line.high[i]:{form}})"


def _facts(provenance: Mapping[str, Any], figure: Figure, *, stale: bool) -> Iterator[str]:
    """Yield what a reader needs to judge the figure, a sentence each."""
    if (runs := max(len(line.runs) for line in figure.lines)) > 1:
        yield f"Mean of {runs} runs, and in brackets and as a band the lowest and the highest of them."
    date = str(provenance.get("date", "an unknown date"))[:10]
    known = [f"{name} {provenance[name]}" for name in ("torch", "python", "device", "commit") if provenance.get(name)]
    yield f"Measured on {date}{' with ' if known else ''}{', '.join(known)}."
    if stale:
        yield "The source has changed since: this was recorded for an older one."
    if command := provenance.get("command"):
        yield f"Measure it again with `{command}`."
