"""`python -m gradspec_lab selftest`: a few subjects from the command line."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from gradspec._record import to_text
from gradspec_lab.__main__ import main
from gradspec_lab.selftest._record import read_matrix


@pytest.mark.slow
def test_a_mutant_is_killed_and_recorded(tmp_path):
    record = tmp_path / "kills.json"
    found = CliRunner().invoke(main, ["selftest", "GradFactor.sign_flipped", "--record", str(record)])

    assert found.exit_code == 0, found.output
    assert "mutant: 1 of 1 killed" in found.output
    (subject,) = read_matrix(record).subjects
    assert "vjp" in subject.killed_by


def test_the_stock_checkers_stand_beside_a_specimen():
    found = CliRunner().invoke(main, ["selftest", "--specimens", "--stock", "--json", "clipping_backward"])

    assert found.exit_code == 0, found.output
    assert '"own": ["cotangent_linearity"]' in found.stdout
    assert '"gradcheck"' in found.stdout


def test_an_unknown_name_runs_nothing():
    found = CliRunner().invoke(main, ["selftest", "no_such_thing"])

    assert (found.exit_code, "no specimen and no mutant is named 'no_such_thing'" in found.output) == (2, True)


@pytest.mark.slow
def test_a_sweep_of_seeds_says_how_much_it_tried():
    found = CliRunner().invoke(main, ["selftest", "--seeds", "1", "cube_once"])

    assert found.exit_code == 0, found.output
    assert re.search(r"^seeds: 1, 2 of 2 cases, \d+ verdicts, 0 failures$", found.stdout, re.MULTILINE)


def test_a_sweep_of_seeds_asks_the_broken_specimens_of_that_name_too():
    found = CliRunner().invoke(main, ["selftest", "--seeds", "2", "off_by_a_millionth"])

    assert found.exit_code == 0, found.output
    assert "\nbroken specimens: 1 of 1, noticed by their own laws 2 of 2 times\n" in found.stdout


def test_a_record_of_seeds_is_of_all_functions(tmp_path):
    record = tmp_path / "seeds.json"
    found = CliRunner().invoke(main, ["selftest", "--seeds", "1", "cube_once", "--record", str(record)])

    assert (found.exit_code, record.exists()) == (2, False)
    assert found.stderr == "Error: a record of seeds is of all functions: leave out NAME, or --record\n"


def test_seeds_of_an_unknown_name_run_nothing():
    found = CliRunner().invoke(main, ["selftest", "--seeds", "1", "no_such_thing"])

    assert (found.exit_code, "no_such_thing" in found.stderr, found.stderr.count("\n")) == (2, True, 1)


@pytest.mark.slow
def test_a_record_that_cannot_be_used_is_said_and_measured_again(tmp_path):
    words = ["selftest", "GradFactor.sign_flipped", "--record", str(tmp_path / "kills.json")]
    CliRunner().invoke(main, words)
    text = (tmp_path / "kills.json").read_text("utf-8")
    (tmp_path / "kills.json").write_text(text.replace("vjp", "jvp", 1), encoding="utf-8")
    found = CliRunner().invoke(main, words)

    assert found.exit_code == 0, found.output
    assert ": all is measured again\n0 of 1 subjects are current; 1 measured in" in found.stderr
    (subject,) = read_matrix(tmp_path / "kills.json").subjects
    assert "vjp" in subject.killed_by


@pytest.mark.parametrize(
    ("words", "kind"),
    [(("scale",), "seeds"), (("--seeds", "1"), "kill matrix"), (("--seeds", "1", "--fresh"), "report")],
    ids=" ".join,
)
def test_a_record_of_something_else_is_not_replaced(tmp_path, monkeypatch, words, kind):
    monkeypatch.chdir(tmp_path)
    text = to_text(kind, {})
    (tmp_path / "other.json").write_text(text)
    found = CliRunner().invoke(main, ["selftest", *words, "--record", "other.json"])

    assert found.exit_code == 2
    assert found.stderr == (
        f"Error: --record other.json is a record of kind {kind!r}, and would be replaced: give another path\n"
    )
    assert (tmp_path / "other.json").read_text() == text
