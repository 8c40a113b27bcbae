"""The comparison of two devices, on a machine that need not have two: the CPU stands in for the second one."""

import pytest

from gradspec.law import HOLDS, Status, TrialOf
from gradspec.laws.tensor._parity import compare_devices
from gradspec.profile import load_profile
from gradspec.spec._maker import Maker
from gradspec_lab.specimens import DISEASED, HONEST

FUNCTIONS = [spec for spec in HONEST if spec.kind == "function"]


def trials(spec):
    for case in spec.cases(Maker(0, "cpu")):
        yield TrialOf(spec=spec, case=case, profile=load_profile("quick"), seed=0)


@pytest.mark.parametrize("spec", FUNCTIONS, ids=lambda spec: spec.name)
def test_an_honest_function_is_the_same_on_both(spec):
    assert [compare_devices(trial, "cpu", "cpu") for trial in trials(spec)] == [HOLDS for _ in trials(spec)]


def test_a_function_that_changes_between_them_is_caught():
    found = [compare_devices(trial, "cpu", "cpu") for trial in trials(DISEASED["counts_its_calls"].spec)]

    assert Status.BROKEN in {finding.status for finding in found}
    assert any("gradient of `x` on cpu differs from that on cpu" in finding.message for finding in found)
