"""The directive `gradspec-matrix`: every spec of this build against every law of its kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from gradspec.findings._findings import standing
from gradspec.law import Status
from gradspec.render import SIGNS, words
from gradspec.render._text import Standing
from gradspec.report import judges
from gradspec.spec._kinds import kinds
from gradspec.sphinx_ext.domain._page import all_records_for_page, note_object
from gradspec.sphinx_ext.domain._records import Records, by_family
from gradspec.sphinx_ext.page._evidence import measured_line
from gradspec.sphinx_ext.page._links import law_link, spec_link
from gradspec.sphinx_ext.page._nodes import Cell, paragraph, span, table
from gradspec.sphinx_ext.page._verdicts import badge, overall


class MatrixDirective(SphinxDirective):
    """Render a matrix of specs and laws for each kind.

    The option `grid` shows the sign of a verdict without its word, and a legend above. The option `counts` shows how
    many verdicts there are of each status, a column for each kind, in place of them all.
    """

    option_spec: ClassVar[dict[str, Callable[[str], object]]] = {"grid": directives.flag, "counts": directives.flag}

    def run(self) -> list[nodes.Node]:
        """Return the table, or that nothing was measured."""
        records = all_records_for_page(self.env)
        if not records.build:
            self.env.note_reread()
            return [paragraph(badge(Status.NOT_MEASURED))]
        lines = dict.fromkeys(measured_line(record.report) for record in records.build)
        if "counts" in self.options:
            return [_counted(records), *(paragraph(line, classes=["gradspec-detail"]) for line in lines)]
        shown: list[nodes.Node] = []
        grid = "grid" in self.options
        matrices = list(_matrices(records, _sign if grid else badge))
        titles = {kind.name: kind.title for kind in kinds()}  # a record may tell of a kind that is not installed
        for kind, head, rows in matrices:
            if len(matrices) > 1:
                shown.append(nodes.rubric("", titles.get(kind, kind)))
            matrix = table(head, rows, "gradspec-matrix", *(["gradspec-grid"] if grid else []))
            shown += [note_object(self, "matrix", kind, matrix), matrix]
        return [
            *([_legend()] if grid else []),
            *shown,
            *(paragraph(line, classes=["gradspec-detail"]) for line in lines),
        ]


def _matrices(
    records: Records, show: Callable[[Standing], nodes.Node]
) -> Iterator[tuple[str, list[Cell], list[list[Cell]]]]:
    """Yield the kind, the head and the rows of a table for each kind of spec: each kind has laws of its own."""
    kinds: dict[str, list[str]] = {}
    for spec in records.specs:
        kinds.setdefault(records.kind_of(spec), []).append(spec)
    for kind, specs in kinds.items():
        head: list[Cell] = ["Law", *(spec_link(spec, _short(records, spec)) for spec in specs)]
        yield kind, head, list(_rows(records, kind, specs, show))


def _rows(
    records: Records, kind: str, specs: list[str], show: Callable[[Standing], nodes.Node]
) -> Iterator[list[Cell]]:
    judging = {name: law for name, law in records.laws.items() if judges(law, kind)}
    for family, names in by_family(judging).items():
        yield [family[:1].upper() + family[1:]]
        for name in names:
            yield [law_link(name), *(_shown(records, spec, name, show) for spec in specs)]


def _counted(records: Records) -> nodes.Node:
    """Return a table of the verdicts, one for each spec, law and case."""
    counts: dict[str, Counter[Standing]] = {}
    for record in records.build:
        for verdict in record.report.verdicts:
            stale = record.is_stale(verdict.spec, verdict.law)
            status = Status.NOT_MEASURED if stale else standing(verdict)
            counts.setdefault(records.kind_of(verdict.spec), Counter())[status] += 1
    found = [status for status in SIGNS if any(count[status] for count in counts.values())]
    head: list[Cell] = ["Verdict", *(kind.title for kind in kinds() if kind.name in counts)]
    columns = [counts[kind.name] for kind in kinds() if kind.name in counts]
    rows: list[list[Cell]] = [[badge(status), *(f"{count[status]:,}" for count in columns)] for status in found]
    return table(head, rows, "gradspec-counts")


def _shown(records: Records, spec: str, law: str, show: Callable[[Standing], nodes.Node]) -> Cell:
    """Return a verdict; nothing if the law has nothing to judge of the spec."""
    record = records.of_spec(spec)
    is_blank = record is not None and law in record.report.laws and not record.judges(law, spec)
    return "" if is_blank else show(_status(records, spec, law))


def _status(records: Records, spec: str, law: str) -> Standing:
    record = records.of_spec(spec)
    if record is None or record.is_stale(spec, law):
        return Status.NOT_MEASURED
    return overall(record.report.of(spec=spec, law=law))


def _sign(status: Standing) -> nodes.inline:
    """Return a verdict as its sign; the word is there for who cannot see it."""
    shown = span("", "gradspec-status", f"gradspec-{status.value}")
    shown += [nodes.Text(SIGNS[status]), span(f" {words(status)}", "gradspec-unseen")]
    return shown


def _legend() -> nodes.paragraph:
    order = sorted(SIGNS, key=lambda status: status is not Status.HOLDS)
    return paragraph(*(part for status in order for part in (badge(status), " ")), classes=["gradspec-legend"])


def _short(records: Records, spec: str) -> str:
    record = records.of_spec(spec)
    documents = record.report.sheets[spec]["documented"] if record else ()
    return str(documents[0]).rpartition(".")[2] if documents else spec
