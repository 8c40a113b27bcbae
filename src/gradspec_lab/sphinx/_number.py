"""The role `gradspec:number`: a value from a record, in a sentence, so that no page types a measured number."""

from __future__ import annotations

import shlex
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxRole

from gradspec._record import experiment_sources, read_experiment
from gradspec.law import Status
from gradspec.report import RecordError
from gradspec.sphinx_ext._warnings import GradspecWarning, warn_each_build
from gradspec.sphinx_ext.domain._page import is_about_today
from gradspec.sphinx_ext.output._markdown_inline import OLDER
from gradspec.sphinx_ext.page._verdicts import badge
from gradspec_lab.sphinx.drawing._plot_record import number_of


class NumberRole(SphinxRole):
    """Show a number: the path of the record, relative to the page; the dotted path in it; a Python format, or none.

    A path in which a name has a space is put in double quotes. A number that was recorded for an older source is an
    abbreviation that says so.
    """

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the number as text, or that nothing was measured."""
        relative, name, form = (*shlex.split(self.text), "", "", "")[:3]
        path = Path(self.env.relfn2path(relative)[1])
        self.env.note_dependency(path)
        try:
            record = read_experiment(path)
            value = number_of(record, name)
            text = format(value, form)
            is_current = is_about_today(self.env, path, experiment_sources(record))
        except RecordError as error:
            return self._not_measured(GradspecWarning.RECORD, f"number {name!r}: {error}")
        except KeyError as error:
            return self._not_measured(GradspecWarning.UNKNOWN, f"{path}: number {name!r}: {error.args[0]}")
        except (ValueError, TypeError):
            return self._not_measured(
                GradspecWarning.UNKNOWN, f"{path}: number {name!r} is {value!r}, which the format {form!r} does not fit"
            )
        if is_current:
            return [nodes.Text(text)], []
        date = str(record.get("provenance", {}).get("date", "an unknown date"))[:10]
        said = f"recorded for an older source, on {date}"
        return [nodes.abbreviation("", text, explanation=said, classes=[OLDER])], []

    def _not_measured(self, kind: GradspecWarning, message: str) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        warn_each_build(self, kind, message)
        return [badge(Status.NOT_MEASURED)], []
