"""`gradspec selftest`: a few subjects from the command line."""

from __future__ import annotations

from click.testing import CliRunner

from gradspec.cli import main
from gradspec.selftest._record import read_matrix


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
