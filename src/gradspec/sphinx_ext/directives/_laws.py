"""The directive `gradspec-laws`: every law of this build by family, each with the first sentence of its docstring."""

from __future__ import annotations

from collections.abc import Iterator

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from gradspec.law import Status
from gradspec.sphinx_ext.domain._domain import records_for_page
from gradspec.sphinx_ext.domain._records import Records
from gradspec.sphinx_ext.page._links import law_link
from gradspec.sphinx_ext.page._nodes import Cell, paragraph, table
from gradspec.sphinx_ext.page._verdicts import badge


class LawsDirective(SphinxDirective):
    """List the laws of this build."""

    def run(self) -> list[nodes.Node]:
        """Return the table, or that nothing was measured."""
        records = records_for_page(self.env)
        if not records.build:
            self.env.note_reread()
            return [paragraph(badge(Status.NOT_MEASURED))]
        return [table(["Law", "What it says"], _rows(records), "gradspec-law-list")]


def _rows(records: Records) -> Iterator[list[Cell]]:
    families: dict[str, list[str]] = {}
    for name, law in records.laws.items():
        families.setdefault(law["family"], []).append(name)
    for family, names in families.items():
        yield [family[:1].upper() + family[1:]]
        for name in names:
            yield [law_link(name), _first_sentence(records.laws[name]["doc"])]


def _first_sentence(doc: str) -> str:
    """Return the first paragraph of a docstring, which the house keeps to a sentence."""
    return " ".join(doc.strip().partition("\n\n")[0].split())
