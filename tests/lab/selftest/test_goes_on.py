"""A run of subjects goes on from an earlier one of the same files, versions and seed, and from no other."""

from dataclasses import replace

import pytest

from gradspec_lab.selftest._run import selftest

NAMES = ("GradFactor.sign_flipped", "GradMultiply.sign_flipped")


@pytest.mark.slow
def test_what_was_measured_of_this_tree_is_kept_and_of_another_one_is_not():
    first = selftest(NAMES[:1], exactly=True)
    both = selftest(NAMES, exactly=True, known=first)
    elsewhere = replace(both, provenance={**both.provenance, "files": "of another tree"})

    assert (first.measured, both.measured) == (1, 1)
    assert {subject.name for subject in both.subjects} == set(NAMES)
    assert selftest(NAMES, exactly=True, known=both).measured == 0
    assert selftest(NAMES[:1], exactly=True, known=elsewhere).measured == 1
    assert selftest(NAMES[:1], exactly=True, known=both, seed=1).measured == 1
