"""Measurements on a CUDA device on a page: the role `gradspec:cuda` and the directive `gradspec-cuda`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective, SphinxRole

from gradspec.law import Status
from gradspec.render import words
from gradspec.report import RecordError
from gradspec.sphinx_ext._warnings import GradspecWarning, warn_each_build
from gradspec.sphinx_ext.domain._domain import domain_of
from gradspec.sphinx_ext.page._nodes import Cell, paragraph, table
from gradspec.sphinx_ext.page._verdicts import badge
from gradspec_lab._summary import read_form, read_summary
from gradspec_lab.sphinx._benchmark import measurements

NONE = "No CUDA record has been made yet: nothing on this site was measured on a GPU"


class CudaRole(SphinxRole):
    """Say, without a full stop, what was measured on a GPU, and when; the text is the path of the summary."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the words, or that there is no record."""
        path = Path(self.env.relfn2path(self.text)[1])
        domain_of(self.env).note_pattern(path, files := sorted(path.parent.glob(path.name)))
        if not files:
            return [nodes.Text(NONE)], []
        self.env.note_dependency(path)
        try:
            facts = read_form(path)[1]["provenance"]
        except RecordError as error:
            warn_each_build(self, GradspecWarning.RECORD, str(error))
            return [badge(Status.NOT_MEASURED)], []
        what = f"{facts['device']}, torch {facts['torch']}, on {facts['date'][:10]} at commit {facts['commit']}"
        return [nodes.Text(f"The functions, networks and operators of gradspec were measured on {what}")], []


class CudaDirective(SphinxDirective):
    """Render the summary of a CUDA device: the verdicts counted, the waits, and the benchmarks."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return the tables, or that nothing was measured."""
        path = Path(self.env.relfn2path(self.arguments[0])[1])
        domain_of(self.env).note_pattern(path, files := sorted(path.parent.glob(path.name)))
        if not files:
            return [paragraph(badge(Status.NOT_MEASURED))]
        self.env.note_dependency(path)
        try:
            data = read_form(path)[1]
            counts = Counter(verdict.status for verdict in read_summary(path).verdicts)
            return list(_content(data, counts))
        except RecordError as error:
            message = str(error)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            message = f"{path} is not the summary of a device ({type(error).__name__}: {error})"
        warn_each_build(self, GradspecWarning.RECORD, message)
        return [paragraph(badge(Status.NOT_MEASURED))]


def _content(data: Mapping[str, Any], counts: Mapping[Status, int]) -> Iterator[nodes.Node]:
    if counts:
        said = ", ".join(f"{words(status)} {counts[status]:,}" for status in Status if status in counts)
        profile = data["provenance"]["profile"]
        yield paragraph(
            f"Verdicts: {said}. The laws that compile ran on {profile['compiled_cases'] or 'all'} of the cases of each "
            f"spec, with {profile['backend']}."
        )
    if waits := data.get("waits"):
        head: list[Cell] = ["Called", "Waits in forward", "Waits in backward"]
        yield table(head, [_wait(row) for row in waits], "gradspec-waits")
    if benchmarks := data.get("benchmarks"):
        yield paragraph(f"{benchmarks['what']}. Matrix products in float32: {benchmarks['matmul']}.")
        yield from measurements(row for row in benchmarks["measurements"] if "error" not in row)
        for row in benchmarks["measurements"]:
            if "error" in row:
                named = [str(row[name]) for name in ("what", "rows", "dtype") if name in row]
                yield paragraph(f"{', '.join(named) or 'The benchmarks ended'}: {row['error']}")
    facts = data["provenance"]
    known = ", ".join(
        f"{name.replace('_', ' ')} {facts[name]}"
        for name in ("device", "torch", "cuda", "driver", "python", "commit", "seed", "processes", "lacks", "inductor")
        if name in facts
    )
    yield paragraph(f"Measured on {facts['date']}: {known}.", classes=["gradspec-detail"])


def _wait(row: Mapping[str, Any]) -> list[Cell]:
    name = [paragraph(nodes.literal("", str(row.get("name", "")))), *map(_detail, row.get("where", ()))]
    if "error" in row:
        return [name, str(row["error"]), ""]
    return [name, str(row["forward"]), str(row["backward"])]


def _detail(place: str) -> nodes.paragraph:
    return paragraph(place, classes=["gradspec-detail"])
