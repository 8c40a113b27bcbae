"""The role `gradspec:number`: a value from a record, in a sentence, so that no page types a measured number."""

from __future__ import annotations

import shlex
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxRole

from gradspec._record import read_experiment
from gradspec.law import Status
from gradspec.report import RecordError
from gradspec.sphinx_ext._warnings import GradspecWarning, warn_each_build
from gradspec.sphinx_ext.page._verdicts import badge
from gradspec_lab.evidence.counts import RECORDS, counted
from gradspec_lab.sphinx.drawing._plot_record import number_of


class NumberRole(SphinxRole):
    """Show a number: the path of the record, relative to the page; the dotted path in it; a Python format, or none.

    The path of the folder of all committed records is of what they hold, counted. A path in which a name has a space
    is put in double quotes.
    """

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the number as text, or that nothing was measured."""
        relative, name, form = (*shlex.split(self.text), "", "", "")[:3]
        path = Path(self.env.relfn2path(relative)[1])
        for file in [path] if path != RECORDS else RECORDS.rglob("*.json"):
            self.env.note_dependency(file)
        try:
            record = {"counts": counted()} if path == RECORDS else read_experiment(path)
            value = number_of(record, name)
        except RecordError as error:
            return self._not_measured(GradspecWarning.RECORD, f"number {name!r}: {error}")
        except KeyError as error:
            return self._not_measured(GradspecWarning.UNKNOWN, f"{path}: number {name!r}: {error.args[0]}")
        try:
            text = format(value, form)
        except (ValueError, TypeError):
            return self._not_measured(
                GradspecWarning.UNKNOWN, f"{path}: number {name!r} is {value!r}, which the format {form!r} does not fit"
            )
        return [nodes.Text(text)], []

    def _not_measured(self, kind: GradspecWarning, message: str) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        warn_each_build(self, kind, message)
        return [badge(Status.NOT_MEASURED)], []
