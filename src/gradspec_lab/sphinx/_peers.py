"""The directive `gradspec-peers`: each published implementation in the committed records, and the laws it breaks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from gradspec.findings import ORDER, rank_of, rank_words
from gradspec.law import Status
from gradspec.render._text import Standing
from gradspec.report import judges
from gradspec.sphinx_ext._warnings import GradspecWarning, warn_each_build
from gradspec.sphinx_ext.domain._page import note_object, records_for_page
from gradspec.sphinx_ext.domain._records import Record, Records
from gradspec.sphinx_ext.page._links import law_link
from gradspec.sphinx_ext.page._nodes import Cell, paragraph, table
from gradspec.sphinx_ext.page._verdicts import badge, overall

#: What goes before the laws that are broken only because another one is.
FOLLOWS = "follows from these"


class PeersDirective(SphinxDirective):
    """Render what was found in the published implementations, a row each."""

    def run(self) -> list[nodes.Node]:
        """Return the table, or that nothing was measured."""
        records = records_for_page(self.env)
        rows: list[list[Cell]] = []
        entries: list[nodes.Node] = []
        for record in records.committed:
            for name, row in _rows(record):
                shown = nodes.literal("", name)
                entries.append(note_object(self, "peer", name, shown))
                rows.append([[paragraph(nodes.strong("", row[0])), paragraph(shown)], *row[1:]])
        if not rows:
            where = "no record in `gradspec_committed_records` holds the packages that it measured"
            warn_each_build(self, GradspecWarning.RECORD, f"{where}: make one")
            return [paragraph(badge(Status.NOT_MEASURED))]
        head: list[Cell] = ["Published class", "Laws that it breaks, with the number of cases", "Other laws"]
        return [*entries, table(head, rows, "gradspec-peers"), *_measured(records)]


def _rows(record: Record) -> Iterator[tuple[str, tuple[str, Cell, Cell]]]:
    """Yield the name of each published class, and what is before and behind it in its row."""
    packages: Mapping[str, str] = record.report.provenance.get("packages", {})
    for name in record.report.sheets if packages else ():
        # The import name of espnet is espnet2.
        found = [f"{package} {version}" for package, version in packages.items() if name.startswith(package)]
        broken, others = _found(record, name)
        yield name, (found[0] if found else "unknown", broken, others)


def _found(record: Record, name: str) -> tuple[Cell, Cell]:
    """Return the laws that a published class breaks, the most dangerous first, and how many laws said what else."""
    kind = str(record.report.sheets[name].get("kind", "function"))
    broken: dict[str, list[nodes.Node]] = {}
    others: dict[Standing, int] = {}
    for law, sheet in record.report.laws.items():
        verdicts = record.report.of(spec=name, law=law)
        if not judges(sheet, kind) or not verdicts:
            continue
        if failed := [verdict for verdict in verdicts if verdict.status.is_failure]:
            own = [rank_of(verdict) for verdict in failed if not verdict.finding.follows]
            links = broken.setdefault(rank_words(min(own, key=ORDER.index)) if own else FOLLOWS, [])
            links += [nodes.Text(", " if links else " "), law_link(law), nodes.Text(f" ({len(failed)})")]
        else:
            status = overall(verdicts)
            others[status] = others.get(status, 0) + 1
    rest = [paragraph(badge(status), f" {count}") for status, count in others.items()]
    order = [*(rank_words(rank) for rank in ORDER), FOLLOWS]
    lines = [paragraph(nodes.strong("", f"{said}:".capitalize()), *broken[said]) for said in order if said in broken]
    return lines or ("none of those that were measured" if others else ""), rest


def _measured(records: Records) -> Iterator[nodes.Node]:
    for record in records.committed:
        facts = record.report.provenance
        commit = facts.get("commit") or "unknown"
        line = (
            f"Measured on {record.date} at commit {commit} with torch {facts.get('torch', '?')}, "
            f"device {facts.get('device', '?')}."
        )
        yield paragraph(line, classes=["gradspec-detail"])
