"""The directive `gradspec-audit`: what an audit found of a published function, with the command that finds it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from gradspec._record import experiment_sources, read
from gradspec.law import Status
from gradspec.report import RecordError
from gradspec.sphinx_ext._warnings import GradspecWarning, warn_each_build
from gradspec.sphinx_ext.domain._page import is_about_today, note_object
from gradspec.sphinx_ext.page._links import law_link
from gradspec.sphinx_ext.page._nodes import Cell, code, paragraph, table
from gradspec.sphinx_ext.page._verdicts import badge


class AuditDirective(SphinxDirective):
    """Render an audit: the path of the record, relative to the page, then the name of the function in it."""

    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        """Return version, command, findings and what holds, or that nothing was measured."""
        relative, name = self.arguments
        path = Path(self.env.relfn2path(relative)[1])
        self.env.note_dependency(path)
        try:
            record = read(path, "audits", again="measure it again")
            found = {audit["name"]: audit for audit in record["audits"]}
            if name not in found:
                message = f"{path} holds no audit {name!r} (it holds: {', '.join(found) or 'none'})"
                return self._not_measured(GradspecWarning.UNKNOWN, message)
            if len(failed := _failed(found[name])) != len(found[name]["findings"]):
                raise ValueError(
                    f"{len(failed)} of its verdicts fail, and it has {len(found[name]['findings'])} findings"
                )
            head, *rest = _rendered(found[name], record["provenance"])
            sources = experiment_sources(record)
        except RecordError as error:
            return self._not_measured(GradspecWarning.RECORD, f"audit {name!r}: {error}")
        except (KeyError, TypeError, ValueError) as error:
            return self._not_measured(
                GradspecWarning.RECORD, f"{path} holds no audits ({type(error).__name__}: {error})"
            )
        if not is_about_today(self.env, path, sources):
            warn_each_build(self, GradspecWarning.STALE, f"{path} was measured of an older source: measure it again")
        return [note_object(self, "record", f"{path.stem} {name}", head), head, *rest]

    def _not_measured(self, kind: GradspecWarning, message: str) -> list[nodes.Node]:
        warn_each_build(self, kind, message)
        return [paragraph(badge(Status.NOT_MEASURED))]


def _failed(audit: Mapping[str, Any]) -> list[str]:
    return [law for law, status in audit["verdicts"].items() if Status(status).is_failure]


def _rendered(audit: Mapping[str, Any], provenance: Mapping[str, Any]) -> Iterator[nodes.Element]:
    yield paragraph(f"`{audit['target'].rpartition(':')[2]}` of {audit['package']} {audit['version']}:")
    yield code(audit["command"], "sh")
    yield table(["Law", "Verdict", "What was found"], map(_row, audit["findings"]))
    statuses = Counter(map(Status, audit["verdicts"].values()))
    others = {status: count for status, count in sorted(statuses.items()) if not status.is_failure}
    counted = ", ".join(f"{count} {status.value.replace('_', ' ')}" for status, count in others.items())
    known = [f"{name} {provenance[name]}" for name in ("torch", "python", "device", "commit") if provenance.get(name)]
    date = str(provenance.get("date", "an unknown date"))[:10]
    yield paragraph(
        f"The other laws: {counted}. Measured on {date} with {', '.join(known)}.", classes=["gradspec-detail"]
    )


def _row(finding: Mapping[str, str]) -> list[Cell]:
    said = [nodes.Text(finding["message"].partition(" For more details")[0])]
    values = [f"{label} {finding[label]}" for label in ("got", "expected") if finding.get(label)]
    cell: list[nodes.Node] = [nodes.paragraph("", "", *said)]
    if values:
        cell.append(nodes.paragraph("", ", ".join(values), classes=["gradspec-detail"]))
    return [law_link(finding["law"]), badge(Status(finding["status"])), cell]
