"""The directive `gradspec-matrix`: every spec of this build against every law of its kind."""

from __future__ import annotations

from collections.abc import Iterator

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from gradspec.law import Status
from gradspec.report import judges
from gradspec.spec._kinds import kinds
from gradspec.sphinx_ext.domain._domain import note_object, records_for_page
from gradspec.sphinx_ext.domain._records import Records
from gradspec.sphinx_ext.page._evidence import measured_line
from gradspec.sphinx_ext.page._links import law_link, spec_link
from gradspec.sphinx_ext.page._nodes import Cell, paragraph, table
from gradspec.sphinx_ext.page._verdicts import badge, overall


class MatrixDirective(SphinxDirective):
    """Render a matrix of specs and laws for each kind."""

    def run(self) -> list[nodes.Node]:
        """Return the table, or that nothing was measured."""
        records = records_for_page(self.env)
        if not records.build:
            self.env.note_reread()
            return [paragraph(badge(Status.NOT_MEASURED))]
        lines = dict.fromkeys(measured_line(record.report) for record in records.build)
        shown: list[nodes.Node] = []
        matrices = list(_matrices(records))
        titles = {kind.name: kind.title for kind in kinds()}  # a record may tell of a kind that is not installed
        for kind, head, rows in matrices:
            if len(matrices) > 1:
                shown.append(nodes.rubric("", titles.get(kind, kind)))
            matrix = table(head, rows, "gradspec-matrix")
            shown += [note_object(self, "matrix", kind, matrix), matrix]
        return [
            *shown,
            *(paragraph(line, classes=["gradspec-detail"]) for line in lines),
        ]


def _matrices(records: Records) -> Iterator[tuple[str, list[Cell], list[list[Cell]]]]:
    """Yield the kind, the head and the rows of a table for each kind of spec: each kind has laws of its own."""
    kinds: dict[str, list[str]] = {}
    for spec in records.specs:
        kinds.setdefault(records.kind_of(spec), []).append(spec)
    for kind, specs in kinds.items():
        head: list[Cell] = ["Law", *(spec_link(spec, _short(records, spec)) for spec in specs)]
        yield kind, head, list(_rows(records, kind, specs))


def _rows(records: Records, kind: str, specs: list[str]) -> Iterator[list[Cell]]:
    family = ""
    for name, law in records.laws.items():
        if not judges(law, kind):
            continue
        if law["family"] != family:
            family = law["family"]
            yield [family[:1].upper() + family[1:]]
        yield [law_link(name), *(_cell(records, spec, name) for spec in specs)]


def _cell(records: Records, spec: str, law: str) -> Cell:
    record = records.of_spec(spec)
    if record is None or record.is_stale(spec, law):
        return badge(Status.NOT_MEASURED)
    return badge(overall(record.report.of(spec=spec, law=law)))


def _short(records: Records, spec: str) -> str:
    record = records.of_spec(spec)
    documents = record.report.sheets[spec]["documented"] if record else ()
    return str(documents[0]).rpartition(".")[2] if documents else spec
