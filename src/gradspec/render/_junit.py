"""A report as JUnit XML, as Jenkins, GitLab and others read it: a suite for each spec, a test for each law and case."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from gradspec.findings import by_cell, excuse
from gradspec.law import Status, Verdict
from gradspec.render._place import place_of_spec
from gradspec.render._remarks import remarks_of
from gradspec.render._text import excused, finding_text, reason, words

if TYPE_CHECKING:
    from gradspec.findings import Judged, Judgement
    from gradspec.report import Report

_PASSED = (Status.HOLDS, Status.REFUSED_AS_DECLARED)
#: What XML 1.0 cannot hold, not even escaped.
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(judgement: Judgement) -> str:
    """Return the XML: a failure for each cause. What follows from one, or does not make the run fail, is skipped."""
    report = judgement.report
    found = by_cell(judgement)
    suites = ElementTree.Element("testsuites", name="gradspec")
    for spec in dict.fromkeys(verdict.spec for verdict in report.verdicts):
        suites.append(_suite(report, spec, found))
    ElementTree.indent(suites, " ")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def _suite(report: Report, spec: str, found: dict[tuple[str, str, str], Judged]) -> ElementTree.Element:
    place = place_of_spec(report, spec)
    cases = [_case(verdict, found.get(verdict.cell)) for verdict in report.of(spec=spec)]
    number = {kind: str(sum(case.find(kind) is not None for case in cases)) for kind in ("failure", "error", "skipped")}
    suite = ElementTree.Element(
        "testsuite",
        name=_text(spec),
        tests=str(len(cases)),
        failures=number["failure"],
        errors=number["error"],
        skipped=number["skipped"],
    )
    if place:
        suite.set("file", place.file)
    properties = ElementTree.SubElement(suite, "properties")
    facts = {**report.provenance, **({"line": place.line} if place else {})}
    for name, value in facts.items():
        if isinstance(value, str | int) and value != "":
            ElementTree.SubElement(properties, "property", name=_text(str(name)), value=_text(str(value)))
    suite.extend(cases)
    if said := remarks_of(report, spec):
        ElementTree.SubElement(suite, "system-out").text = _text("\n".join(said))
    return suite


def _case(verdict: Verdict, judged: Judged | None) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname=_text(verdict.spec), name=_text(f"{verdict.law}[{verdict.case}]"))
    if verdict.status in _PASSED:
        return case
    why = excuse(judged, verdict) if judged else ""
    if judged is None or why:
        ElementTree.SubElement(case, "skipped", message=_text(excused(verdict, why)))
        return case
    kind = "error" if verdict.status is Status.ERROR or verdict.finding.is_cut_off else "failure"
    shown = judged.found.verdict
    failure = ElementTree.SubElement(case, kind, type=words(verdict.status), message=_text(reason(shown)))
    failure.text = _text(finding_text(judged.found))
    return case


def _text(text: str) -> str:
    return _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text)
