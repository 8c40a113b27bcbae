"""The directive `gradspec-versions`: what holds under each version of torch, a record for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from gradspec._record import read_experiment
from gradspec.law import Status
from gradspec.report import RecordError
from gradspec.sphinx_ext._warnings import GradspecWarning, warn_each_build
from gradspec.sphinx_ext.page._nodes import Cell, paragraph, table
from gradspec.sphinx_ext.page._verdicts import badge

Record = Mapping[str, Any]


class VersionsDirective(SphinxDirective):
    """Render a row for each version of torch; the argument is a folder of records, one a version.

    With the option `transforms`, the cells of the transforms table that are not alike under all of them. With
    `questions`, the examples of the pages on Function that print something else under one of them.
    """

    required_arguments = 1
    option_spec: ClassVar[dict[str, Callable[[str], Any]]] = {
        "transforms": directives.flag,
        "questions": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        """Return the tables, or that nothing was measured."""
        folder = Path(self.env.relfn2path(self.arguments[0])[1])
        records = []
        for path in sorted(folder.glob("*.json")):
            self.env.note_dependency(path)
            try:
                records.append(read_experiment(path))
            except RecordError as error:
                warn_each_build(self, GradspecWarning.RECORD, str(error))
        if not records:
            return [paragraph(badge(Status.NOT_MEASURED))]
        try:
            if "questions" in self.options:
                return list(_questions(records))
            return list(_transforms(records) if "transforms" in self.options else _overview(records))
        except (KeyError, TypeError, AttributeError) as error:
            warn_each_build(self, GradspecWarning.RECORD, f"{folder}: {type(error).__name__}: {error}")
            return [paragraph(badge(Status.NOT_MEASURED))]


def _version(record: Record) -> str:
    return str(record["provenance"]["torch"]).partition("+")[0]


def _overview(records: Sequence[Record]) -> Iterator[nodes.Element]:
    head: list[Cell] = [
        "torch",
        "Python",
        "Measured",
        "Verdicts: hold",
        "otherwise",
        "Sound rejected",
        "Broken noticed",
        "Tests failed",
    ]
    rows: list[list[Cell]] = []
    for record in records:
        facts = record["provenance"]
        rows.append(
            [
                _version(record),
                str(facts["python"]),
                f"{str(facts['date'])[:10]}, commit {facts.get('commit') or 'unknown'}",
                *_counts(record),
            ]
        )
    yield table(head, rows, "gradspec-versions")
    if odd := list(_otherwise(records)):
        yield paragraph("The verdicts that are not as the specs promise:")
        head = ["torch", "Spec", "Law", "Cases", "What was found", "As promised since torch"]
        yield table(head, odd, "gradspec-versions")


def _counts(record: Record) -> Iterator[Cell]:
    """Yield the counts of a version; a part that was left out is not measured."""
    if verdicts := record.get("verdicts"):
        yield f"{verdicts['counts'].get('holds', 0):,}"
        yield str(sum(row["cases"] for row in verdicts["otherwise"]))
    else:
        yield from (badge(Status.NOT_MEASURED) for _ in range(2))
    if found := record.get("specimens"):
        yield f"{len(found['rejected'])} of {found['sound']}"
        yield f"{found['diseased'] - len(found['missed'])} of {found['diseased']}"
    else:
        yield from (badge(Status.NOT_MEASURED) for _ in range(2))
    if tests := record.get("tests"):
        yield f"{len(tests['failed'])} of {tests['passed'] + len(tests['failed']):,}"
    else:
        yield badge(Status.NOT_MEASURED)


def _since(records: Sequence[Record], holds: Callable[[Record], bool]) -> str:
    """Return the version since which something holds, and holds in all that follow; empty if it has not begun to."""
    later = [_version(record) for record in takewhile(holds, reversed(records))]
    return later[-1] if later else ""


def _otherwise(records: Sequence[Record]) -> Iterator[list[Cell]]:
    judged = [record for record in records if "verdicts" in record]
    odd = {
        _version(record): {(row["spec"], row["law"]) for row in record["verdicts"]["otherwise"]} for record in judged
    }
    for record in judged:
        for row in record["verdicts"]["otherwise"]:
            spec, law = row["spec"], row["law"]
            said = f"{row['status'].replace('_', ' ')}: {row['message']}"
            since = _since(judged, lambda other, pair=(spec, law): pair not in odd[_version(other)])  # type: ignore[misc]
            names = nodes.literal("", spec), nodes.literal("", law)
            yield [_version(record), *names, str(row["cases"]), nodes.Text(said), since]


def _transforms(records: Sequence[Record]) -> Iterator[nodes.Element]:
    cells = [(transform, step) for transform, row in records[-1].get("transforms", {}).items() for step in row]
    rows: list[list[Cell]] = []
    for transform, step in cells:

        def word(record: Record, transform: str = transform, step: str = step) -> str:
            return str(record.get("transforms", {}).get(transform, {}).get(step, "not measured"))

        said = [word(record) for record in records]
        if len(set(said)) > 1:
            names = nodes.literal("", transform.replace("`", "")), nodes.literal("", step)
            rows.append([*names, *said, _since(records, lambda record, word=word: word(record) == "right")])  # type: ignore[misc]
    versions = [_version(record) for record in records]
    if rows:
        yield paragraph("What differs from one version of torch to another:")
        yield table(["transform", "class", *versions, "right since torch"], rows, "gradspec-versions")
    else:
        yield paragraph(f"It is the same under torch {', '.join(versions)}.")


def _questions(records: Sequence[Record]) -> Iterator[nodes.Element]:
    counts = [sum(record["examples"].values()) for record in records]
    ran = " and ".join(f"{count} under torch {_version(record)}" for count, record in zip(counts, records, strict=True))
    yield paragraph(f"Examples that were run: {ran}.")
    rows: list[list[Cell]] = [
        [_version(record), one["page"], nodes.literal("", one["code"]), nodes.literal("", one["got"])]
        for record in records
        for one in record["otherwise"]
    ]
    if rows:
        yield paragraph("All print what the pages show, but for these:")
        yield table(["torch", "page", "example", "prints"], rows, "gradspec-versions")
    else:
        yield paragraph("All print what the pages show.")
