"""The directive `gradspec-symptoms`: what a wrong result looks like, its cause, remedy, and the laws that find it."""

from __future__ import annotations

from collections.abc import Iterator

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from gradspec._symptoms import SYMPTOMS
from gradspec.sphinx_ext.page._links import law_link
from gradspec.sphinx_ext.page._nodes import Cell, table


class SymptomsDirective(SphinxDirective):
    """Render a row for each kind of reason that a finding may have."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        return [table(["What you see", "What is behind it, and what to do", "Found by"], _rows(), "gradspec-symptoms")]


def _rows() -> Iterator[list[Cell]]:
    for row in SYMPTOMS:
        laws = [part for law in row.laws for part in (nodes.Text(", "), law_link(law))][1:]
        said = f"{_sentence(row.cause)} {_sentence(row.remedy)}"
        yield [[nodes.Text(f"{_sentence(row.symptom)} "), nodes.literal("", row.kind)], said, laws]


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."
