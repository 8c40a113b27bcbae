"""The committed kill matrix: it is about all that there is today, and says that the laws see enough.

A record of an older source is not judged, as its page says so too: `nox -s selftest` makes it again in minutes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gradspec.functions import FUNCTIONS
from gradspec.selftest._equivalent import EQUIVALENT
from gradspec.selftest._mutants import mutants
from gradspec.selftest._record import read_matrix
from gradspec.selftest.specimens import DISEASED, HONEST
from gradspec.sphinx_ext._staleness import is_current

MATRIX = read_matrix(Path(__file__).parents[2] / "docs" / "records" / "kill_matrix.json")
TODAY = {
    "honest": {spec.name for spec in HONEST},
    "diseased": set(DISEASED),
    "mutant": {mutant.name for mutant in mutants(FUNCTIONS)},
}


@pytest.fixture(autouse=True)
def _of_todays_source():
    if not all(map(is_current, MATRIX.sources.values())):
        pytest.skip("docs/records/kill_matrix.json was made of an older source: make it again with nox -s selftest")


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
    functions = [s for s in (*MATRIX.of("diseased"), *MATRIX.of("honest")) if s.group == "function"]

    assert {tuple(subject.stock) for subject in functions} == {
        ("gradcheck", "gradcheck, fast mode", "gradgradcheck", "opcheck")
    }
