"""The directive `gradspec-laws`: every law of this build by family, each with the first sentence of its docstring."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.directives.other import TocTree
from sphinx.util.docutils import SphinxDirective

from gradspec.law import Status
from gradspec.report import judges
from gradspec.sphinx_ext._config import options
from gradspec.sphinx_ext.domain._page import records_for_page
from gradspec.sphinx_ext.domain._records import Records, by_family
from gradspec.sphinx_ext.output._law_pages import law_pages
from gradspec.sphinx_ext.page._links import law_link
from gradspec.sphinx_ext.page._nodes import Cell, paragraph, table
from gradspec.sphinx_ext.page._verdicts import badge


class LawsDirective(SphinxDirective):
    """List the laws of this build.

    The option `toctree` puts the pages of `gradspec_law_pages` in the navigation; `kind` keeps only the laws that judge
    specs of a kind.
    """

    option_spec: ClassVar[dict[str, Callable[[str], object]]] = {
        "toctree": directives.flag,
        "kind": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """Return the table, or that nothing was measured."""
        records = records_for_page(self.env)
        toctree = self._toctree() if "toctree" in self.options else []
        if not records.build:
            self.env.note_reread()
            return [paragraph(badge(Status.NOT_MEASURED)), *toctree]
        kind = self.options.get("kind")
        known = sorted({name for law in records.laws.values() for name in law.get("kinds", ("function",))})
        if kind is not None and kind not in known:
            raise self.error(f"no law judges specs of the kind {kind!r}: the kinds are {', '.join(known)}")
        return [table(["Law", "What it says"], _rows(records, kind), "gradspec-law-list"), *toctree]

    def _toctree(self) -> list[nodes.Node]:
        if not options(self.config).law_pages:
            raise self.error("the option `toctree` needs gradspec_law_pages in conf.py")
        pages = StringList([f"/{page}" for page in law_pages(self.env)], source=self.get_source_info()[0])
        where = (self.lineno, self.content_offset, "", self.state, self.state_machine)
        return TocTree("toctree", [], {"hidden": None}, pages, *where).run()


def _rows(records: Records, kind: str | None) -> Iterator[list[Cell]]:
    laws = {name: law for name, law in records.laws.items() if kind is None or judges(law, kind)}
    for family, names in by_family(laws).items():
        yield [family[:1].upper() + family[1:]]
        for name in names:
            yield [law_link(name), _first_sentence(records.laws[name]["doc"])]


def _first_sentence(doc: str) -> str:
    """Return the first paragraph of a docstring, which the house keeps to a sentence."""
    return " ".join(doc.strip().partition("\n\n")[0].split())
