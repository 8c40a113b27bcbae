"""What an audit saw beside the verdicts, in each format: nothing of it makes a run fail, and nothing is left out."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
import xmlschema
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Sarif
from torch.autograd import Function

from gradspec import Report, audit
from gradspec.findings import judge
from gradspec.laws import LAWS
from gradspec.render import github, junit, page, sarif
from gradspec.render._remarks import remarks

XSD = xmlschema.XMLSchema(Path(__file__).parent / "junit-10.xsd")
SAID = "The output does not depend on `b`, by any value that was tried."


class NoBias(Function):
    """A product that takes a bias, and leaves it out."""

    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, y_bar):
        x, w = ctx.saved_tensors
        asks_x, asks_w, _ = ctx.needs_input_grad
        return y_bar * w if asks_x else None, y_bar * x if asks_w else None, None


@pytest.fixture(scope="module")
def found():
    laws = [law for law in LAWS if law.name in ("surrogate", "needs_input_grad")]
    args = tuple(torch.rand(3, dtype=torch.float64) for _ in range(3))
    return audit(NoBias, [args], laws=laws, jobs=1)


def test_an_argument_without_an_effect_is_a_remark_in_the_report_and_no_finding(found):
    assert found.report.failures == ()
    assert SAID in found.remarks
    assert ("NoBias", SAID) in remarks(found.report)
    assert remarks(Report.from_json(found.report.to_json())) == remarks(found.report)


def test_each_format_has_the_remarks(found):
    judgement = judge(found.report)
    # What ends the text of another format must not end it here.
    awkward = replace(found.report, sheets={"NoBias": {**found.report.sheets["NoBias"], "remarks": ["<&>\n::%", SAID]}})
    suite = ElementTree.fromstring(junit(judge(awkward))).find("testsuite")
    log = json.loads(sarif(judge(awkward)))

    XSD.validate(junit(judge(awkward)))
    Sarif.model_validate(log)
    assert (suite.get("failures"), suite.find("system-out").text) == ("0", f"<&>\n::%\n{SAID}")
    results = log["runs"][0]["results"]
    assert [(r["ruleId"], r["level"], r["message"]["text"]) for r in results][-1] == ("remark", "note", SAID)
    assert len({r["partialFingerprints"]["specAndLaw/v1"] for r in results}) == 2
    assert [line.startswith("::notice ") for line in github(judge(awkward)).splitlines()] == [True, True]
    assert f"title=gradspec%3A NoBias::{SAID}" in github(judgement)
    assert "by any value that was tried" in page(judgement)
    assert "&lt;&amp;&gt;" in page(judge(awkward))


def test_a_report_without_remarks_has_no_place_for_them(found):
    bare = replace(found.report, sheets={"NoBias": {**found.report.sheets["NoBias"], "remarks": []}})

    assert "system-out" not in junit(judge(bare))
    assert github(judge(bare)) == ""
    assert "Remarks" not in page(judge(bare))
