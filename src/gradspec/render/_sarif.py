"""Findings as SARIF 2.1.0, as code scanning reads them: a rule for each law, a result for each finding."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from gradspec.findings import rank_words, scope_of
from gradspec.render._place import place_of_spec
from gradspec.render._remarks import remarks
from gradspec.render._text import failure_text, finding_text

if TYPE_CHECKING:
    from gradspec.findings import Judged, Judgement
    from gradspec.law import Verdict
    from gradspec.report import Report

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
#: The rule of what an audit saw beside the verdicts.
REMARK = "remark"
SAID = "What an audit saw beside the verdicts. Whether it is meant so, only the author of the function knows."


def sarif(judgement: Judgement) -> str:
    """Return the log; with a baseline each result says whether it is new, and what is mended is absent."""
    report = judgement.report
    results = [_result(judged, judgement) for judged in judgement.findings]
    results += [_mended(verdict, report) for verdict in judgement.mended]
    results += [_remark(spec, remark, report) for spec, remark in remarks(report)]
    rules = list(dict.fromkeys(result["ruleId"] for result in results))
    for result in results:
        result["ruleIndex"] = rules.index(result["ruleId"])
    driver = {
        "name": "gradspec",
        "semanticVersion": str(report.provenance.get("gradspec") or "0.0.0"),
        "rules": [_rule(law, report.laws.get(law, {})) for law in rules],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": "gradspec/"},
        "invocations": [{"executionSuccessful": True}],
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": {"provenance": dict(report.provenance)},
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1, ensure_ascii=False) + "\n"


def _rule(law: str, sheet: Mapping[str, Any]) -> dict[str, Any]:
    said = SAID if law == REMARK else str(sheet.get("doc", "")).strip()
    return {
        "id": law,
        "shortDescription": {"text": " ".join(said.partition("\n\n")[0].split()) or law},
        "help": {"text": said or law},
        "properties": {"tags": [str(sheet.get("family", "")) or "law"]},
    }


def _result(judged: Judged, judgement: Judgement) -> dict[str, Any]:
    verdict = judged.found.verdict
    result = _at(verdict.law, verdict.spec, judgement.report) | {
        "level": "error" if judged.fails else "warning" if judged.is_asked and not judged.is_question else "note",
        "message": {"text": finding_text(judged.found)},
        "properties": {
            "rank": rank_words(judged.found.rank),
            "scope": str(scope_of(verdict.law, judgement.report.laws)),
            "asked": judged.is_asked,
            "laws": judged.found.laws,
            "cases": judged.found.cases,
            "follows": judged.found.follows,
            "again": verdict.rerun,
        },
    }
    state = {"baselineState": "unchanged" if judged.is_known else "new"} if judgement.has_baseline else {}
    return result | state


def _mended(verdict: Verdict, report: Report) -> dict[str, Any]:
    text = {"text": failure_text(verdict)}
    said = {"level": "none", "kind": "pass", "message": text, "baselineState": "absent"}
    return _at(verdict.law, verdict.spec, report) | said


def _remark(spec: str, remark: str, report: Report) -> dict[str, Any]:
    return _at(REMARK, spec, report, remark) | {"level": "note", "message": {"text": remark}}


def _at(rule: str, spec: str, report: Report, *more: str) -> dict[str, Any]:
    """Return what is said of any result: its rule, where it is, and what makes it the same one tomorrow."""
    place = place_of_spec(report, spec)
    location: dict[str, Any] = {"logicalLocations": [{"name": spec, "kind": "function"}]}
    if place:
        file = {"uri": quote(place.file), "uriBaseId": "%SRCROOT%"}
        location["physicalLocation"] = {"artifactLocation": file, "region": {"startLine": place.line}}
    same = hashlib.sha256("\0".join((spec, rule, *more)).encode()).hexdigest()[:16]
    return {"ruleId": rule, "locations": [location], "partialFingerprints": {"specAndLaw/v1": same}}
