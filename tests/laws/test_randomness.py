"""What a spec may say of its noise, and that chance alone does not break the statistical law."""

from dataclasses import replace

import pytest

from gradspec._engine._verify import verify
from gradspec.functions import SHAKE_SHAKE
from gradspec.law import Status
from gradspec.laws.tensor import DISTRIBUTION
from gradspec.selftest.specimens.noisy import NOISE, SHAKEN


def test_the_noise_is_an_argument_without_a_gradient():
    with pytest.raises(ValueError, match="the noise 'x' is no parameter"):
        replace(SHAKEN, noise=replace(NOISE, names=("x",), evaluation=None, at_rest={}))
    with pytest.raises(ValueError, match="the noise 'c' is no parameter"):
        replace(SHAKEN, noise=replace(NOISE, names=("c",), evaluation=None, at_rest={}))


def test_evaluation_and_the_noise_at_rest_are_given_together():
    with pytest.raises(ValueError, match="give both"):
        replace(SHAKEN, noise=replace(NOISE, at_rest={"a": 0.5}))
    with pytest.raises(ValueError, match="give both"):
        replace(SHAKEN, noise=replace(NOISE, evaluation=None))


def test_another_implementation_is_not_held_to_the_form_that_draws_ours():
    assert SHAKEN.for_(SHAKEN.function, name="theirs").noise is None
    assert SHAKEN.for_(SHAKEN.function, name="theirs", noise=NOISE).noise is NOISE


@pytest.mark.parametrize("spec", [SHAKE_SHAKE, SHAKEN], ids=lambda spec: spec.name)
def test_chance_does_not_break_the_distribution(spec):
    statuses = {verify([spec], [DISTRIBUTION], case="rows", seed=seed).verdicts[0].status for seed in range(20)}

    assert statuses == {Status.HOLDS}
