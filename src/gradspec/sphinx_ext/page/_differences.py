"""The section on published implementations: what each does otherwise, and the verdict that shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from docutils import nodes

from gradspec.law import Status, Verdict
from gradspec.render import brief_message, words
from gradspec.sphinx_ext.domain._records import Records
from gradspec.sphinx_ext.page._links import law_link
from gradspec.sphinx_ext.page._nodes import Cell, paragraph, table
from gradspec.sphinx_ext.page._verdicts import badge, overall
from gradspec.sphinx_ext.page._view import View

#: What a sentence says of an error, and of its absence: "raises", but not "that raises"; "silently".
_RAISES, _SILENT = re.compile(r"(?<!that )\braises?\b"), re.compile(r"\bsilently\b")


def differences(view: View) -> Iterator[nodes.Node]:
    """Yield the table of differences."""
    rows: list[list[Cell]] = []
    peer = ""
    for difference in view.sheet["differences"]:
        if difference["peer"] != peer:
            peer = difference["peer"]
            rows.append([nodes.literal("", peer)])
        shown = [*_shown_by(difference), *_verdict(difference, view.records)]
        rows.append([difference["published"], difference["ours"], shown])
    if rows:
        yield paragraph(
            "Each published implementation was held to the same spec. The last column is what a law found in it."
        )
        yield table(["Published code", "This implementation", "Shown by"], rows, "gradspec-differences")


def unfounded(view: View) -> Iterator[str]:
    """Yield what is wrong with each difference that a record does not show, or otherwise; an older one says nothing."""
    for difference in view.sheet["differences"]:
        peer, law, case = difference["peer"], difference["law"], difference["case"]
        known = {verdict.case for verdict in view.verdicts(law)}
        if case and known and case not in known:
            yield (
                f"a difference from {peer} names the case {case!r} of the law {law}, and the spec has no such case: "
                "name another, or take the difference out"
            )
        for record in view.records.committed:
            verdicts = record.report.of(spec=peer, law=law, case=case or None)
            if not verdicts or record.is_stale(peer, law):
                continue
            if not any(verdict.status.is_failure for verdict in verdicts):
                yield (
                    f"{peer} no longer differs: in {record.path.name}, made on {record.date}, law {law} "
                    f"{words(overall(verdicts))} on case {case!r}: take the difference out"
                )
            elif otherwise := _otherwise(difference["published"], verdicts):
                yield f"{difference['published']!r} is said of {peer}, and in {record.path.name} {otherwise}"


def _otherwise(sentence: str, verdicts: Sequence[Verdict]) -> str:
    """Return what a record shows where a sentence says that a call raises, or that it differs silently."""
    failed = [verdict for verdict in verdicts if verdict.status.is_failure]
    error = next((v.finding.message for v in failed if re.search(r"\braised\b", v.finding.message)), "")
    where = f"law {failed[0].law} on case {failed[0].case!r}"
    if _RAISES.search(sentence) and not error:
        return f"{where} found no error: {failed[0].finding.message}"
    if _SILENT.search(sentence) and error:
        return f"{where} found an error: {error}"
    return ""


def _shown_by(difference: Mapping[str, Any]) -> list[nodes.Node]:
    case = f", case {difference['case']}" if difference["case"] else ""
    return [paragraph("law ", law_link(difference["law"]), case)]


def _verdict(difference: Mapping[str, Any], records: Records) -> list[nodes.Node]:
    peer, law, case = difference["peer"], difference["law"], difference["case"]
    for record in (*records.committed, *records.build):
        verdicts = record.report.of(spec=peer, law=law, case=case or None)
        if not verdicts:
            continue
        if record.is_stale(peer, law):
            why = f" (recorded for an older source, on {record.date})"
            return [paragraph(badge(Status.NOT_MEASURED), why)]
        found = [paragraph(badge(overall(verdicts)), f", measured on {record.date}")]
        if message := next((v.finding.message for v in verdicts if v.status is not Status.HOLDS), ""):
            found.append(paragraph(nodes.Text(brief_message(message)), classes=["gradspec-detail"]))
        return list(found)
    return [paragraph(badge(Status.NOT_MEASURED))]
