"""Each format is what its readers read: held to their schemas, and read back to the words that went in."""

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema
from bs4 import BeautifulSoup
from pydantic import ValidationError
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Sarif

from gradspec.findings import Bar, judge
from gradspec.law import Rank, Status
from gradspec.render import badge, finding_text, github, junit, page, sarif
from render.conftest import AWKWARD, double, run, spec

#: Of the Jenkins plugin that reads JUnit's files.
XSD = xmlschema.XMLSchema(Path(__file__).parent / "junit-10.xsd")
THIS = "tests/render/conftest.py"


def line_of(text):
    lines = Path(THIS).read_text(encoding="utf-8").splitlines()
    return 1 + next(number for number, line in enumerate(lines) if line.startswith(text))


def commands(text):
    """Read workflow commands as GitHub's runner does: properties up to `::`, escapes undone, `%25` last."""

    def plain(value, *escapes):
        for escape, character in (*escapes, ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
            value = value.replace(escape, character)
        return value

    for line in text.splitlines():
        level, properties, message = re.fullmatch(r"::(\w+) (.*?)::(.*)", line).groups()
        pairs = (pair.split("=", 1) for pair in properties.split(","))
        yield level, {name: plain(value, ("%3A", ":"), ("%2C", ",")) for name, value in pairs}, plain(message)


@pytest.mark.usefixtures("here")
def test_that_a_workflow_reads_the_words_and_the_line_of_each_finding(report):
    judgement = judge(report)
    read = list(commands(github(judgement)))

    assert [level for level, _, _ in read] == ["error"] * len(judgement.findings)
    for judged, (_, properties, message) in zip(judgement.findings, read, strict=True):
        title, _, rest = finding_text(judged.found).partition("\n")
        assert (properties["title"], message) == (f"gradspec: {title.replace('`', '')}", rest.strip())
    place = {properties["title"].partition(" ")[2].partition(" ")[0]: properties for _, properties, _ in read}
    assert (place["broken"]["file"], int(place["broken"]["line"])) == (THIS, line_of("class Double("))


@pytest.mark.usefixtures("here")
def test_that_junit_is_valid_and_counts_each_check_once(report):
    judgement = judge(report)
    text = junit(judgement)
    XSD.validate(text)
    suites = ElementTree.fromstring(text).findall("testsuite")

    assert [suite.get("name") for suite in suites] == ["sound", f"broken {AWKWARD}", "raises"]
    for suite in suites:
        said = report.of(spec=suite.get("name"))
        assert int(suite.get("tests")) == len(suite.findall("testcase")) == len(said)
        found = [one.found.verdict for one in judgement.findings if one.found.verdict.spec == suite.get("name")]
        broken = [v for v in found if v.status in (Status.BROKEN, Status.INCONCLUSIVE, Status.VACUOUS)]
        assert int(suite.get("failures")) == len(suite.findall("*/failure")) == len(broken)
        errors = [v for v in found if v.status is Status.ERROR]
        assert int(suite.get("errors")) == len(suite.findall("*/error")) == len(errors)
        assert int(suite.get("skipped")) == len(suite.findall("*/skipped"))
    case, beside = (case for case in suites[1].findall("testcase") if case.get("name").startswith("vjp["))
    assert "gradspec check TARGET --law vjp" in case.find("failure").text
    assert beside.find("skipped").get("message").startswith("the cause of `vjp` on case `a`: broken: ")
    assert suites[1].get("file") == THIS


def test_that_junit_leaves_out_what_xml_cannot_hold(report):
    XSD.validate(junit(judge(run(spec("\ufffe and \U0001f600", "a")))))


def test_that_a_schema_refuses_what_is_no_junit(report):
    with pytest.raises(xmlschema.XMLSchemaValidationError):
        XSD.validate(junit(judge(report)).replace("classname=", "klass="))


@pytest.mark.usefixtures("here")
def test_that_sarif_is_valid_and_places_each_finding(report):
    text = sarif(judge(report))
    log = Sarif.model_validate_json(text)
    (run_of,) = log.runs
    (broken,) = (r for r in run_of.results if r.ruleId == "vjp")
    place = broken.locations[0].physicalLocation

    assert log.version.value == json.loads(text)["version"] == "2.1.0"
    assert (place.artifactLocation.uri, place.region.startLine) == (THIS, line_of("class Double("))
    assert [run_of.tool.driver.rules[result.ruleIndex].id for result in run_of.results] == [
        result.ruleId for result in run_of.results
    ]
    assert broken.baselineState is None


def test_that_a_schema_refuses_what_is_no_sarif(report):
    with pytest.raises(ValidationError):
        Sarif.model_validate_json(sarif(judge(report)).replace('"ruleId"', '"rule"'))


def test_that_a_badge_is_what_shields_asks_for(report):
    shown = json.loads(badge(judge(report)))
    sound = json.loads(badge(judge(run(spec("sound", "a", function=double)))))

    assert shown == {"schemaVersion": 1, "label": "gradspec", "message": "2 findings", "color": "red"}
    assert (sound["message"], sound["color"]) == ("2 checks hold", "brightgreen")


def test_that_a_page_needs_nothing_and_escapes_everything(report):
    text = page(judge(replace(report, provenance={**report.provenance, "device": AWKWARD})))
    soup = BeautifulSoup(text, "html.parser")

    assert not soup.find_all(["script", "link", "img", "iframe", "b", "f"])
    assert not re.search(r"https?:|url\(|@import", text)
    assert AWKWARD in soup.find("pre").text + soup.find_all("pre")[1].text
    assert AWKWARD in [cell.text for cell in soup.find_all("td")]
    assert f"broken {AWKWARD}" in [head.text for head in soup.find_all("th")]
    assert [row.td.text for row in soup.table.tbody.find_all("tr")] == ["primal", "vjp", "formula", "raw_returns"]


@pytest.mark.usefixtures("here")
def test_that_a_baseline_tells_new_from_known_and_mended_in_every_format(report, baseline):
    judgement = judge(report, baseline=baseline)
    levels = {properties["title"]: level for level, properties, _ in commands(github(judgement))}
    states = {
        r.locations[0].logicalLocations[0].name: r.baselineState.value
        for r in Sarif.model_validate_json(sarif(judgement)).runs[0].results
    }
    tests = ElementTree.fromstring(junit(judgement))
    soup = BeautifulSoup(page(judgement), "html.parser")

    assert judgement.fails
    assert sorted(levels.values()) == ["error", "warning"]
    assert states == {f"broken {AWKWARD}": "new", "raises": "unchanged", "sound": "absent"}
    assert (len(tests.findall(".//failure")), len(tests.findall(".//error"))) == (1, 0)
    said = [case.find("skipped").get("message") for case in tests.findall(".//testcase[@classname='raises']")]
    assert said[0].startswith("in the baseline: error: ")
    assert "against the baseline: 1 new, 1 known, 1 mended" in soup.text


def test_that_what_a_baseline_has_fails_no_run_unless_it_has_grown_more_dangerous(report, baseline):
    def as_waste(verdict):
        return verdict if verdict.law != "vjp" else _ranked(verdict, "waste")

    assert not judge(report, baseline=report).fails
    assert judge(report, baseline=baseline).fails
    milder = [as_waste(verdict) for verdict in report.verdicts]
    assert judge(report, baseline=_of(report, milder)).fails
    assert not judge(_of(report, milder), baseline=report).fails


def test_that_a_rank_that_may_be_is_a_warning_and_no_failure(report):
    milder = _of(report, [_ranked(v, "waste") for v in report.verdicts if v.law == "vjp" and v.spec != "raises"])
    judgement = judge(milder, Bar(fail_on=Rank.REFUSED))

    assert not judgement.fails
    assert [level for level, _, _ in commands(github(judgement))] == ["warning"]
    assert "not dangerous enough to fail: waste: " in junit(judgement)
    assert json.loads(badge(judgement))["color"] == "yellow"


def _ranked(verdict, rank):
    return replace(verdict, finding=replace(verdict.finding, rank=rank)) if verdict.status.is_failure else verdict


def _of(report, verdicts):
    return replace(report, verdicts=tuple(verdicts))
