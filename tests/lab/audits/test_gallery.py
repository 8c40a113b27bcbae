"""The gallery holds every silent defect of the truth, or says why it is deliberate."""

from __future__ import annotations

from gradspec._record import read_experiment
from gradspec_lab.audits.gallery import MEANT, RANKS, TRUTH, gallery, measured
from gradspec_lab.audits.report_table import REPOSITORIES
from gradspec_lab.audits.truth_answers import QUESTIONS, answers
from gradspec_lab.audits.truth_table import DELIBERATE

MEASURED = read_experiment(TRUTH)
ROWS = {row["name"]: row for row in MEASURED["functions"]}
RECORD = gallery(MEASURED)
ASKED = [question for questions in RANKS.values() for question in questions]


def test_each_silent_defect_is_shown_or_judged():
    for function in RECORD["functions"]:
        name = function["name"]
        silent = [q for q, answer in answers(ROWS[name]).items() if answer.silent and QUESTIONS[q].counts]
        judged = {**DELIBERATE.get(name, {}), **MEANT.get(name, {})}
        assert len(function["found"]) == len([q for q in silent if q not in judged]), name
        assert bool(function["deliberate"]) == bool(judged), name
        assert set(silent) <= set(ASKED), name


def test_each_judgement_is_of_an_answer_that_was_measured_as_wrong():
    for name, judgements in MEANT.items():
        assert [q for q in judgements if not answers(ROWS[name])[q].silent] == [], name


def test_what_is_said_has_no_word_of_the_form_and_no_part_twice():
    assert measured("wrong: 2, and not 1") == "2, and not 1"
    assert measured("differs by 1; differs by 1; differs: a gradient is None; raises Unsupported: no") == (
        "differs by 1; differs: a gradient is None"
    )
    assert measured("ignored: None, and not 0.5") == "None, and not 0.5"


def test_each_function_has_the_lines_that_reproduce_it():
    for function in RECORD["functions"]:
        install, audit = function["reproduce"]
        assert install.endswith(f"{function['package']}=={function['version']}")
        assert f"{function['class']} --case" in audit


def test_each_function_has_the_place_where_a_finding_is_reported():
    for function in RECORD["functions"]:
        assert function["report"] == f"{REPOSITORIES[function['package']]}/issues"
        assert function["report"].startswith("https://github.com/")
    assert set(REPOSITORIES) == {function["package"] for function in RECORD["functions"]}, "a row that no audit needs"
