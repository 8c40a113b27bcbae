"""The directive `gradspec-package-specs`: functions of packages, each with a spec and a wrong variant."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from gradspec.law import Status
from gradspec.report import RecordError
from gradspec.sphinx_ext._warnings import GradspecWarning, warn_each_build
from gradspec.sphinx_ext.page._nodes import Cell, paragraph, table
from gradspec.sphinx_ext.page._verdicts import badge
from gradspec_lab.campaigns.packages._specs_read import read_specs


class PackageSpecsDirective(SphinxDirective):
    """Render a row for each function of a summary: its spec, and what is said of it and of its wrong variant.

    The argument is the summary.
    """

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table, and when and with what it was measured; or that nothing was."""
        path = Path(self.env.relfn2path(self.arguments[0])[1])
        self.env.note_dependency(path)
        try:
            found = read_specs(path)
        except RecordError as error:
            warn_each_build(self, GradspecWarning.RECORD, str(error))
            return [paragraph(badge(Status.NOT_MEASURED))]
        rows, facts = found["specs"], found["provenance"]
        packages, half = len({row["package"] for row in rows}), median(row["lines"] for row in rows)
        when = f"{len(rows)} functions of {packages} packages; half of the specs have at most {half:g} lines. Checked "
        when += f"until {facts['date'][:10]} on {facts['platform']} with gradspec {facts['gradspec']}, "
        when += f"torch {facts['torch']} and Python {facts['python']}."
        head: list[Cell] = ["Function", "Lines", "Right", "Wrong, and what is found first"]
        body = [_cells(row) for row in rows]
        return [table(head, body, "gradspec-package-specs"), paragraph(when, classes=["gradspec-detail"])]


def _cells(row: Mapping[str, Any]) -> list[Cell]:
    kind = row["spec"].partition("/")[0].replace("_", " ")
    function = paragraph(f"`{row['right']['name']}`, {row['package']} {row['version']} ({kind})")
    right, wrong = (badge(Status.BROKEN if row[name]["fails"] else Status.HOLDS) for name in ("right", "wrong"))
    laws = ", ".join(f"`{law}`" for law in row["wrong"]["laws"])
    first = paragraph(wrong, f" `{row['wrong']['name']}`, {laws}: {row['wrong']['says']}")
    return [function, str(row["lines"]), paragraph(right), first]
