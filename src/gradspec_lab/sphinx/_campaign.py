"""The directive `gradspec-campaign`: what a watch saw of other packages, and what is wrong in training with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from gradspec.law import Status
from gradspec.report import RecordError
from gradspec.sphinx_ext._warnings import GradspecWarning, warn_each_build
from gradspec.sphinx_ext.page._nodes import Cell, paragraph, table
from gradspec.sphinx_ext.page._verdicts import badge
from gradspec_lab.campaigns.packages._summary import CLASSES, WRONG, classes, read_campaign


class CampaignDirective(SphinxDirective):
    """Render the counts of a campaign, and a row for each function that is wrong; the argument is its summary."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return two tables, or that nothing was measured."""
        path = Path(self.env.relfn2path(self.arguments[0])[1])
        for file in (path, CLASSES):
            self.env.note_dependency(file)
        try:
            found = read_campaign(path)
        except RecordError as error:
            warn_each_build(self, GradspecWarning.RECORD, str(error))
            return [paragraph(badge(Status.NOT_MEASURED))]
        counts, facts, said = found["counts"], found["provenance"], classes()
        head: list[Cell] = ["Package", "Function", "What is wrong"]
        when = (
            f"{counts['functions']} functions of {counts['packages']} packages, measured on {facts['date'][:10]} with "
        )
        when += f"torch {facts['torch']}; {counts['not_measured']} packages could not be run."
        return [
            table(["In training", "Functions"], list(_counted(counts)), "gradspec-campaign"),
            table(head, list(_wrong(found["packages"], said)), "gradspec-campaign"),
            paragraph(when, classes=["gradspec-detail"]),
        ]


def _counted(counts: Mapping[str, Any]) -> Iterator[list[Cell]]:
    for name, number in counts["classes"].items():
        yield [f"found: {name}", str(number)]
    failing = sum(counts["classes"].values())
    others = {name: number for name, number in counts["training"].items() if not name.startswith(("wrong", "refused"))}
    if failing + sum(others.values()) != counts["functions"]:
        raise ValueError("a function in training is counted twice, or not at all")
    for name, number in others.items():
        yield [name, str(number)]


def _wrong(packages: Any, said: Mapping[str, Mapping[str, Any]]) -> Iterator[list[Cell]]:
    for package in packages:
        for row in package["functions"]:
            if row.get("class") == WRONG:
                module, _, name = row["function"].partition(":")
                shown = nodes.literal(name, name)
                shown["title"] = module
                yield [f"{package['name']} {package['version']}", shown, said[row["function"]]["why"]]
