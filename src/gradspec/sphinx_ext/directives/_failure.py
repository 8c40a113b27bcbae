"""The directive `gradspec-failure`: what a recorded run said, word for word, of the specs that failed in it."""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from gradspec.findings import findings
from gradspec.law import Status
from gradspec.render import finding_text, summary_lines
from gradspec.report import RecordError, Report, read_record
from gradspec.sphinx_ext._warnings import GradspecWarning, warn_each_build
from gradspec.sphinx_ext.domain._page import is_about_today, note_object
from gradspec.sphinx_ext.page._evidence import measured_line
from gradspec.sphinx_ext.page._nodes import code, paragraph
from gradspec.sphinx_ext.page._verdicts import badge


class FailureDirective(SphinxDirective):
    """Render the failures of a record, in the words of `gradspec check`; the argument is its path."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the output and a line for each spec, or that nothing was measured."""
        path = Path(self.env.relfn2path(self.arguments[0])[1])
        self.env.note_dependency(path)
        try:
            report = read_record(path)
        except RecordError as error:
            warn_each_build(self, GradspecWarning.RECORD, str(error))
            return [paragraph(badge(Status.NOT_MEASURED))]
        if not report.violations:
            warn_each_build(self, GradspecWarning.RECORD, f"nothing fails in {path}: record a run that fails")
        if not is_about_today(self.env, path, report.sources):
            warn_each_build(
                self, GradspecWarning.STALE, f"{path} was measured of an older source: record the run again"
            )
        output = code(printed(report), "text")
        line = paragraph(measured_line(report), classes=["gradspec-detail"])
        return [note_object(self, "record", path.stem, output), output, line]


def printed(report: Report) -> str:
    """Return what a run prints of its findings, then a line for each spec."""
    return "\n\n".join([*map(finding_text, findings(report)), "\n".join(summary_lines(report))])
