"""What a spec may say of its noise, and that chance alone does not break the statistical law."""

from dataclasses import replace

import pytest
import torch

from gradspec import Case, FunctionSpec, Supports
from gradspec._engine._verify import verify
from gradspec.functions import SHAKE_SHAKE
from gradspec.law import Status
from gradspec.laws.tensor import DISTRIBUTION
from gradspec.spec import Noise
from gradspec_lab.specimens.noisy import NOISE, SHAKEN


def test_the_noise_is_an_argument_without_a_gradient():
    with pytest.raises(ValueError, match="the noise 'x' is not a parameter"):
        replace(SHAKEN, noise=replace(NOISE, names=("x",), evaluation=None, at_rest={}))
    with pytest.raises(ValueError, match="the noise 'c' is not a parameter"):
        replace(SHAKEN, noise=replace(NOISE, names=("c",), evaluation=None, at_rest={}))


def test_evaluation_and_the_noise_at_rest_are_given_together():
    with pytest.raises(ValueError, match="give both"):
        replace(SHAKEN, noise=replace(NOISE, at_rest={"a": 0.5}))
    with pytest.raises(ValueError, match="give both"):
        replace(SHAKEN, noise=replace(NOISE, evaluation=None))


def test_another_implementation_is_not_held_to_the_form_that_draws_ours():
    assert SHAKEN.for_(SHAKEN.function, name="theirs").noise is None
    assert SHAKEN.for_(SHAKEN.function, name="theirs", noise=NOISE).noise is NOISE


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec", [pytest.param(SHAKE_SHAKE, marks=pytest.mark.slow), SHAKEN], ids=lambda spec: spec.name
)
def test_chance_does_not_break_the_distribution(spec):
    statuses = {verify([spec], [DISTRIBUTION], case="rows", seed=seed).verdicts[0].status for seed in range(20)}

    assert statuses == {Status.HOLDS}


def drop(x, mask):
    return x * mask


def dropped(keep):
    """Return the form that draws one mask a sample, as stochastic depth does: 1 / keep, or 0."""
    return lambda x: x * (torch.rand(len(x), 1, dtype=x.dtype) < keep) / 0.7


def drop_path(drawing, dtype=torch.float64):
    mask = Noise(
        names=("mask",),
        drawing=drawing,
        law="1 / 0.7 with probability 0.7, else 0",
        cdf=lambda m: 0.3 * (m >= 0) + 0.7 * (m >= 1 / 0.7),
        probe=lambda n, x: (torch.ones(n, 2, dtype=dtype),),
        recover=lambda y, gradients: {"mask": gradients["x"]},
    )

    def cases(make):
        yield Case(name="rows", args=(make(3, 2), make(3, 1)))

    return FunctionSpec(
        name="drop_path",
        function=drop,
        primal=drop,
        surrogate=drop,
        wrt=("x",),
        cases=cases,
        noise=mask,
        supports=Supports.all(),
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_law_that_jumps_is_judged(dtype):
    (right,) = verify([drop_path(dropped(0.7), dtype)], [DISTRIBUTION]).verdicts
    (wrong,) = verify([drop_path(dropped(0.6), dtype)], [DISTRIBUTION]).verdicts
    (one,) = verify([drop_path(lambda x: x * (torch.rand(()) < 2) / 0.7, dtype)], [DISTRIBUTION]).verdicts

    assert (right.status, wrong.status, one.status) == (Status.HOLDS, Status.BROKEN, Status.BROKEN)
    assert "the distributions are 0.1" in wrong.finding.message


def test_masks_that_neighbours_share_are_not_independent():
    def shared(x):
        return x * (torch.rand(len(x) // 2, 1, dtype=x.dtype) < 0.7).repeat_interleave(2, 0) / 0.7

    (found,) = verify([drop_path(shared)], [DISTRIBUTION]).verdicts

    assert "of neighbouring samples are not independent" in found.finding.message
