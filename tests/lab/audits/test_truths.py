"""The truth about published functions is of the table, and the comparisons are of the truth."""

import json
from pathlib import Path

import pytest

from gradspec._record import RecordError, read_experiment, update_experiment
from gradspec.laws import LAWS
from gradspec_lab.audits.compare import judged, read_results, shares
from gradspec_lab.audits.truth_answers import QUESTIONS, answers
from gradspec_lab.audits.truth_table import DELIBERATE, PUBLISHED

HERE = Path(__file__).parent
TRUTH = read_experiment(HERE / "published" / "truth.json")
ROWS = {row["name"]: row for row in TRUTH["functions"]}


def test_the_truth_holds_what_the_table_names():
    rows = [(row["name"], row["version"], row["target"], row["case"]) for row in TRUTH["functions"]]

    assert rows == [(a.name, a.version, a.target, a.case) for a in PUBLISHED]
    assert len(rows) >= 45
    assert len({a.package for a in PUBLISHED}) >= 16


def test_each_judgement_is_of_an_answer_that_was_measured_as_wrong():
    for name, judgements in DELIBERATE.items():
        found = answers(ROWS[name])
        assert [q for q in judgements if not found[q].silent] == [], name


def test_no_measurement_failed():
    refused = {"plain", "layout", "retained", "checkpoint", "autocast", "batched"}  # where an error is an answer
    for row in TRUTH["functions"]:
        assert [q for q, said in row.items() if q not in refused and str(said).startswith("raises")] == [], row["name"]


def test_each_law_of_a_question_is_a_law():
    assert {law for question in QUESTIONS.values() for law in question.laws} <= {law.name for law in LAWS}


# The first run is as it was said, in no form of records, and of the functions that the table had then.
@pytest.mark.parametrize(
    ("name", "read", "least"),
    [("results", read_results, len(PUBLISHED)), ("first-run", lambda p: json.loads(p.read_text()), 55)],
)
def test_a_comparison_is_of_the_table_and_its_figures_are_those_of_its_rows(name, read, least):
    results = read(HERE / "published" / f"{name}.json")

    assert len(results["functions"]) >= least
    assert [row["name"] for row in results["functions"]] == [a.name for a in PUBLISHED][: len(results["functions"])]
    assert results["figures"] == shares(results["functions"])


def test_a_comparison_whose_figures_are_not_those_of_its_rows_is_refused(tmp_path):
    results = read_results(HERE / "published" / "results.json")
    update_experiment({**results, "figures": {**results["figures"], "found": 170}}, tmp_path / "results.json")

    with pytest.raises(RecordError, match="its figures are not those of its rows"):
        read_results(tmp_path / "results.json")


def test_a_defect_is_missed_without_a_failure_and_a_finding_is_false_where_the_truth_is_another():
    row = ROWS["timm:SwishAutoFn"]
    said = {
        "exit": 1,
        "remarks": "",
        "verdicts": [{"law": "layout", "status": "broken", "rank": "wrong", "message": "no"}],
    }

    found = judged({**row, "second": {"x": "missing: None, and not 2"}}, said)

    assert found["defects"]["second"] == "missed"
    assert found["false"]["layout"] == "wrong: no | measured: same"
