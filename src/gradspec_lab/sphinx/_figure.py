"""Shared parts of the directives of figures: an SVG with a caption, a table of its numbers, its origin."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from gradspec._record import read_experiment
from gradspec.law import Status
from gradspec.report import RecordError
from gradspec.sphinx_ext._warnings import GradspecWarning, warn_each_build
from gradspec.sphinx_ext.domain._page import note_object
from gradspec.sphinx_ext.page._fold import folded
from gradspec.sphinx_ext.page._nodes import Cell, paragraph, table
from gradspec.sphinx_ext.page._verdicts import badge

#: A table shows at most so many values of an axis, spread evenly, the first and the last among them.
ROWS = 6


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A figure in the two forms that a page shows."""

    title: str
    #: Takes the name of the element, which is unique on the page, and returns the SVG.
    svg: Callable[[str], str]
    head: list[Cell]
    rows: list[list[Cell]]
    #: What a reader must know to read the numbers, if anything.
    note: str = ""


class FigureDirective(SphinxDirective):
    """Render a figure: the path of the record, relative to the page, then the name; the content is the caption."""

    required_arguments = 2
    has_content = True

    @abstractmethod
    def draw(self, record: Mapping[str, Any], name: str) -> Drawing:
        """Return a figure of a record.

        Raises:
            KeyError: the record holds no such figure; the message says which it holds.
            RecordError: what it holds cannot be drawn.
        """

    def run(self) -> list[nodes.Node]:
        """Return the figure, its table and its provenance, or that nothing was measured."""
        relative, name = self.arguments
        path = Path(self.env.relfn2path(relative)[1])
        self.env.note_dependency(path)
        try:
            record = read_experiment(path)
            drawing = self.draw(record, name)
        except RecordError as error:
            return self._not_measured(GradspecWarning.RECORD, f"figure {name!r}: {error}")
        except KeyError as error:
            return self._not_measured(GradspecWarning.UNKNOWN, f"{path}: {error.args[0]}")
        facts = " ".join(filter(None, [drawing.note, *_facts(record.get("provenance", {}))]))
        shown = self._figure(drawing, f"{path.stem}-{name}")
        return [
            note_object(self, "record", f"{path.stem} {name}", shown),
            shown,
            folded(
                "The numbers",
                table(drawing.head, drawing.rows, "gradspec-numbers"),
                paragraph(facts, classes=["gradspec-detail"]),
            ),
        ]

    def _figure(self, drawing: Drawing, name: str) -> nodes.figure:
        ids = self.state.document.ids
        wanted = nodes.make_id(name)
        unique = next(i for i in (wanted, *(f"{wanted}-{n}" for n in range(2, len(ids) + 3))) if i not in ids)
        content = self.parse_content_to_nodes()
        words = content[0].children if content and isinstance(content[0], nodes.paragraph) else []
        caption = nodes.caption("", "", *(words or [nodes.Text(drawing.title)]))
        made = nodes.figure("", nodes.raw("", drawing.svg(unique), format="html"), caption, ids=[unique])
        made["classes"].append("gradspec-figure")
        self.state.document.set_id(made)
        if rest := content[1:]:
            made += nodes.legend("", *rest)
        return made

    def _not_measured(self, kind: GradspecWarning, message: str) -> list[nodes.Node]:
        warn_each_build(self, kind, message)
        return [paragraph(badge(Status.NOT_MEASURED)), *self.parse_content_to_nodes()]


def spread(values: Sequence[float]) -> list[float]:
    """Return at most `ROWS` of the values, spread evenly, the first and the last among them."""
    count = min(ROWS, len(values))
    return [values[round(i * (len(values) - 1) / max(count - 1, 1))] for i in range(count)]


def place(value: float) -> str:
    """Return a value of an axis as a table shows it: a large whole number with all of its digits."""
    return f"{value:,.0f}" if value == round(value) and abs(value) >= 1e5 else f"{value:g}"


def _facts(provenance: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a reader needs to judge a figure, a sentence each."""
    date = str(provenance.get("date", "an unknown date"))[:10]
    known = [f"{name} {provenance[name]}" for name in ("torch", "python", "device", "commit") if provenance.get(name)]
    yield f"Measured on {date}{' with ' if known else ''}{', '.join(known)}."
    if command := provenance.get("command"):
        yield f"Measure it again with `{command}`."
