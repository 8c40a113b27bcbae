"""The directive `gradspec-campaign`: what a watch saw of other packages, and what is wrong in training with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from gradspec.law import Status
from gradspec.report import RecordError
from gradspec.sphinx_ext._warnings import GradspecWarning, warn_each_build
from gradspec.sphinx_ext.page._fold import folded
from gradspec.sphinx_ext.page._nodes import Cell, code, paragraph, table
from gradspec.sphinx_ext.page._verdicts import badge
from gradspec_lab.campaigns.packages._summary import (
    CLASSES,
    DANGERS,
    DIRECTION,
    FALSE,
    PROOFS,
    SIDE_EFFECT,
    SOME_USES,
    WRONG,
    classes,
    read_campaign,
)

_HEADS = {
    DIRECTION: "Trains in a wrong direction",
    SOME_USES: "Wrong in some uses",
    SIDE_EFFECT: "Right, with a side effect",
}


class CampaignDirective(SphinxDirective):
    """Render what is wrong, by danger and package, with the script that shows it, and the counts of a campaign.

    The argument is its summary.
    """

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return an entry for each function that is wrong, and tables; or that nothing was measured."""
        path = Path(self.env.relfn2path(self.arguments[0])[1])
        for file in (path, CLASSES, *PROOFS.glob("*.py")):
            self.env.note_dependency(file)
        try:
            found = read_campaign(path)
        except RecordError as error:
            warn_each_build(self, GradspecWarning.RECORD, str(error))
            return [paragraph(badge(Status.NOT_MEASURED))]
        counts, facts, packages = found["counts"], found["provenance"], found["packages"]
        when = f"{counts['functions']} functions of {counts['packages']} packages, measured until {facts['date'][:10]} "
        when += f"with torch {facts['torch']}; {counts['not_measured']} packages could not be run."
        head: list[Cell] = ["Domain", "Packages", "Functions", "Wrong", "Meant so, and documented", "Not documented"]
        runs: list[Cell] = ["First run", "Packages", "Functions", "Findings", "Of these false"]
        return [
            *_entries(packages, classes()),
            nodes.rubric("", "What goes wrong most"),
            table(["In training", "Functions"], list(_counted(counts)), "gradspec-campaign"),
            table(head, list(_domains(packages)), "gradspec-campaign"),
            table(runs, [_first_run(run) for run in found["first_runs"]], "gradspec-campaign"),
            paragraph(when, classes=["gradspec-detail"]),
        ]


def _entries(packages: Any, said: Mapping[str, Mapping[str, Any]]) -> Iterator[nodes.Node]:
    """Yield the functions that are wrong, the most dangerous first, each with its proof."""
    wrong = [(p, row["function"]) for p in packages for row in p["functions"] if row.get("class") == WRONG]
    for danger in DANGERS:
        some = [(p, name) for p, name in wrong if said[name]["danger"] == danger]
        if some:
            yield nodes.rubric("", _HEADS[danger])
        for package, function in sorted(some, key=lambda one: (one[0]["name"].lower(), one[1])):
            yield from _entry(package, function, said[function])


def _entry(package: Mapping[str, Any], function: str, row: Mapping[str, Any]) -> list[nodes.Node]:
    module, _, name = function.partition(":")
    shown = nodes.literal(name, name.partition(".<locals>")[0])
    shown["title"] = module
    head = [nodes.strong("", f"{package['name']} {package['version']}"), nodes.Text(", "), shown, nodes.Text(": ")]
    script = (PROOFS / row["proof"]).read_text(encoding="utf-8")
    proof = folded("The script that shows it", code(script, "python"))
    return [nodes.container("", paragraph(*head, row["why"]), proof, classes=["gradspec-entry"])]


def _counted(counts: Mapping[str, Any]) -> Iterator[list[Cell]]:
    for name, number in counts["classes"].items():
        yield [f"found: {name}", str(number)]
    failing = sum(counts["classes"].values())
    others = {name: number for name, number in counts["training"].items() if not name.startswith(("wrong", "refused"))}
    if failing + sum(others.values()) != counts["functions"]:
        raise ValueError("a function in training is counted twice, or not at all")
    for name, number in others.items():
        yield [name, str(number)]


def _domains(packages: Sequence[Mapping[str, Any]]) -> Iterator[list[Cell]]:
    """Yield a row for each domain, that with the most wrong functions first."""
    rows: dict[str, Counter[str]] = {}
    for package in packages:
        row = rows.setdefault(package["domain"].replace("_", " "), Counter())
        row["packages"] += package["status"] == "measured"
        row["functions"] += len(package["functions"])
        row.update(one["class"] for one in package["functions"] if "class" in one)
    names = ("packages", "functions", WRONG, "deliberate and documented", "deliberate and undocumented")
    for domain, row in sorted(rows.items(), key=lambda one: (-one[1][WRONG], one[0])):
        yield [domain, *(str(row[name]) for name in names)]


def _first_run(run: Mapping[str, Any]) -> list[Cell]:
    findings = sum(run["classes"].values())
    false = f"{run['classes'].get(FALSE, 0)} of {findings}"
    return [run["date"][:10], str(run["packages"]), str(run["functions"]), str(findings), false]
