"""The committed kill matrix: what it says of the subjects that there are says that the laws see enough."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradspec.functions import FUNCTIONS
from gradspec_lab.selftest._equivalent import EQUIVALENT
from gradspec_lab.selftest._mutants import mutants
from gradspec_lab.selftest._record import read_matrix
from gradspec_lab.specimens import DISEASED, HONEST

MATRIX = read_matrix(Path(__file__).parents[3] / "docs" / "records" / "kill_matrix.json")
TODAY = {
    "honest": {spec.name for spec in HONEST},
    "diseased": set(DISEASED),
    "mutant": {mutant.name for mutant in mutants(FUNCTIONS)},
}


@pytest.mark.parametrize("sort", TODAY)
def test_every_subject_of_today_was_tried(sort):
    assert {subject.name for subject in MATRIX.of(sort)} == TODAY[sort]


def test_every_diseased_specimen_is_killed_by_its_own_law_and_no_sound_one_by_any():
    assert [(s.name, s.fault) for s in (*MATRIX.of("diseased"), *MATRIX.of("honest")) if s.fault] == []


def test_at_least_95_of_100_mutants_are_killed_and_each_survivor_has_a_proof():
    tried = MATRIX.of("mutant")

    assert sum(subject.is_killed for subject in tried) >= 0.95 * len(tried)
    assert {subject.name for subject in tried if not subject.is_killed} == set(EQUIVALENT)


def test_the_checkers_of_torch_were_asked_about_every_specimen_that_is_a_function():
    functions = [s for s in (*MATRIX.of("diseased"), *MATRIX.of("honest")) if s.group in ("function", "operator")]

    assert {tuple(subject.stock) for subject in functions} == {
        ("gradcheck", "gradcheck, fast mode", "gradgradcheck", "opcheck")
    }


def test_opcheck_was_asked_about_the_operators_themselves_and_accepts_each_sound_one():
    answers = {s.name: s.stock["opcheck"] for s in MATRIX.subjects if s.group == "operator" and s.stock}
    sound = {subject.name for subject in MATRIX.of("honest")}

    assert {name: said for name, said in answers.items() if name in sound and said != "accepts"} == {}
    assert {name for name, said in answers.items() if not said.startswith(("accepts", "OpCheckError"))} == set()
