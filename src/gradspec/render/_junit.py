"""A report as JUnit XML, as Jenkins, GitLab and others read it: a suite for each spec, a test for each law and case."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from gradspec.findings import Judged, Judgement
from gradspec.law import Status, Verdict
from gradspec.render._place import place_of_spec
from gradspec.render._remarks import remarks_of
from gradspec.render._text import failure_text, reason, words

if TYPE_CHECKING:
    from gradspec.report import Report

_PASSED = (Status.HOLDS, Status.REFUSED_AS_DECLARED)
#: What XML 1.0 cannot hold, not even escaped.
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(judgement: Judgement) -> str:
    """Return the XML; a failure that does not make the run fail is skipped, and says why."""
    report = judgement.report
    excused = _excused(judgement)
    suites = ElementTree.Element("testsuites", name="gradspec")
    for spec in dict.fromkeys(verdict.spec for verdict in report.verdicts):
        suites.append(_suite(report, spec, excused))
    ElementTree.indent(suites, " ")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def _suite(report: Report, spec: str, excused: dict[tuple[str, str], str]) -> ElementTree.Element:
    place = place_of_spec(report, spec)
    cases = [_case(verdict, excused.get((spec, verdict.law), "")) for verdict in report.of(spec=spec)]
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


def _case(verdict: Verdict, excuse: str) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname=_text(verdict.spec), name=_text(f"{verdict.law}[{verdict.case}]"))
    if verdict.status in _PASSED:
        return case
    message = _text(reason(verdict))
    if not verdict.finding.is_failure or excuse:
        ElementTree.SubElement(case, "skipped", message=f"{excuse}{message}")
        return case
    kind = "error" if verdict.status is Status.ERROR or verdict.finding.is_cut_off else "failure"
    failure = ElementTree.SubElement(case, kind, type=words(verdict.status), message=message)
    failure.text = _text(failure_text(verdict))
    return case


def _excused(judgement: Judgement) -> dict[tuple[str, str], str]:
    """Return the reason for each law of a spec that may fail without failing the run."""
    found: dict[tuple[str, str], str] = {}
    for judged in sorted(judgement.findings, key=lambda judged: judged.fails):
        spec = judged.found.verdict.spec
        found |= {(spec, law): _excuse(judged) for law in (*judged.found.laws, *judged.found.follows)}
    return found


def _excuse(judged: Judged) -> str:
    if judged.fails:
        return ""
    if judged.is_known:
        return "in the baseline: "
    return "not dangerous enough to fail: " if judged.is_asked else "not asked about: "


def _text(text: str) -> str:
    return _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text)
