"""The directive `gradspec-law`: the page of one law, from its docstring, and what it found."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from gradspec.law import Status
from gradspec.sphinx_ext._warnings import GradspecWarning, warn
from gradspec.sphinx_ext.domain._page import all_records_for_page, note_object
from gradspec.sphinx_ext.domain._records import Record, Records
from gradspec.sphinx_ext.page._links import law_link, spec_link
from gradspec.sphinx_ext.page._nodes import Cell, formula, paragraph, span, table
from gradspec.sphinx_ext.page._verdicts import badge, summary

_HEADING = re.compile(r"(?P<heading>[A-Z][a-z ]+):\s+(?P<text>.*)", re.DOTALL)


class LawDirective(SphinxDirective):
    """Render the page of a law."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the page."""
        records = all_records_for_page(self.env)
        name = self.arguments[0].strip()
        place = nodes.container(classes=["gradspec-law"], ids=[f"law-{name}"])
        index = note_object(self, "law", name, place)
        law = records.of_law(name)
        if law is None:
            self.env.note_reread()
            if records.build:  # where there is no record at all, that has been said once
                warn(GradspecWarning.UNKNOWN, f"no record of this build holds the law {name!r}", self.get_location())
            place += paragraph(badge(Status.NOT_MEASURED))
            return [index, place]
        place += [formula(law["statement"]), *doc_nodes(law["doc"]), *_facts(law)]
        found = list(_found(name, records))
        if found:
            place += [nodes.rubric("", "What it found"), *found]
        return [index, place]


def doc_nodes(doc: str) -> Iterator[nodes.Node]:
    """Yield the paragraphs of a law's docstring; "Remedy: ..." gets its heading in bold."""
    for text in re.split(r"\n\s*\n", doc.strip()):
        flat = " ".join(text.split())
        if match := _HEADING.fullmatch(flat):
            yield paragraph(nodes.strong("", f"{match['heading']}:"), f" {match['text']}")
        elif flat:
            yield paragraph(flat)


def _facts(law: Mapping[str, Any]) -> Iterator[nodes.Node]:
    words = {"ms": "milliseconds", "compile": "one compilation", "process": "a process of its own"}
    parts: list[str | nodes.Node] = [f"Family: {law['family']}. One check costs {words.get(law['cost'], law['cost'])}."]
    if law["requires"]:
        parts.append(" It is not measured if one of these laws ends in an error: ")
        for i, other in enumerate(law["requires"]):
            parts += [", " if i else "", law_link(other)]
        parts.append(".")
    yield paragraph(*(part for part in parts if part != ""))


def _kind(record: Record) -> str:
    """Return what a record is about: the packages that it was made of, or our own code on a device."""
    if record.report.provenance.get("packages"):
        return "published implementation"
    device = str(record.report.provenance.get("device") or "cpu")
    return "documented here" if device.startswith("cpu") else f"documented here, on {device}"


def _found(name: str, records: Records) -> Iterator[nodes.Node]:
    rows: list[list[Cell]] = []
    for group in (records.build, records.committed):
        for record in group:
            kind = _kind(record)
            for spec in record.report.sheets:
                verdicts = record.report.of(spec=spec, law=name)
                if not verdicts:
                    continue
                shown: list[nodes.Node] = [paragraph(spec_link(spec)), paragraph(span(kind, "gradspec-detail"))]
                stale, brief = record.is_stale(spec, name), group is records.committed
                found = summary(verdicts, stale=stale, brief=brief)
                rows.append([shown, found, span(record.date, "gradspec-date")])
    if rows:
        yield table(["Function", "Verdict", "Measured"], rows)
