"""The passes that laws of effects watch: what they run, what they leave out, and what they say."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from gradspec import audit
from gradspec.law import HOLDS, Status, TrialOf, broken
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._passes import BESIDE_A_TANGENT, PLAIN, THROUGH_BACKWARD, called, in_each_pass, passes
from gradspec.profile import load_profile
from gradspec.spec import Case, Supports
from gradspec_lab.specimens import SCALE
from gradspec_lab.specimens.honest import CUBE

X = torch.tensor([1.0, 2.0], dtype=torch.float64)


def trial(spec=CUBE, *args):
    return TrialOf(spec=spec, case=Case(name="two", args=args or (X,)), profile=load_profile("quick"), seed=0)


def test_the_passes_are_those_that_the_spec_promises():
    assert list(passes(trial())) == [PLAIN, BESIDE_A_TANGENT, THROUGH_BACKWARD]
    first = replace(CUBE, supports=Supports.all(forward_mode=False, double_backward=False))
    assert list(passes(trial(first))) == [PLAIN]
    assert list(passes(trial(SCALE, torch.tensor([1, 2]), 3.0))) == [PLAIN]  # no gradient flows to integers


def test_each_order_is_the_derivative_of_the_one_before():
    one, inputs = trial(), Inputs.of(trial())
    leaves = THROUGH_BACKWARD.leaves(inputs)
    orders = list(THROUGH_BACKWARD.orders(called(one, THROUGH_BACKWARD, inputs, leaves), leaves, 0))
    v, w = orders[0].cotangents["output 0"], orders[1].cotangents["gradient of x"]

    assert [list(order.outputs) for order in orders] == [
        ["output 0"],
        ["gradient of x"],
        ["second gradient of x", "second gradient of the cotangent of output 0"],
    ]
    assert torch.allclose(orders[0].found["x"], 3 * X**2 * v)
    assert torch.allclose(orders[1].found["x"], 6 * X * v * w)
    assert torch.allclose(orders[1].found["the cotangent of output 0"], 3 * X**2 * w)


def test_an_argument_carries_a_tangent_where_it_says_so():
    inputs = Inputs.of(trial())

    def tangent_in(way):
        with way.level():
            (x,) = way.args(inputs, way.leaves(inputs))
            return torch.autograd.forward_ad.unpack_dual(x).tangent is not None

    assert [tangent_in(way) for way in (PLAIN, BESIDE_A_TANGENT, THROUGH_BACKWARD)] == [False, True, False]


@pytest.mark.parametrize("way", [BESIDE_A_TANGENT, THROUGH_BACKWARD], ids=lambda way: way.name)
def test_a_finding_says_in_which_pass_it_was(way):
    found = in_each_pass(trial(), lambda at: broken("it writes") if at is way else HOLDS)

    assert found.message == f"{way.name}, it writes"


def test_a_pass_that_is_refused_is_for_another_law_and_the_plain_one_is_not():
    def refused(*ways):
        def watch(way):
            if way in ways:
                raise RuntimeError("no")
            return HOLDS

        return in_each_pass(trial(), watch)

    assert refused(BESIDE_A_TANGENT, THROUGH_BACKWARD) is HOLDS
    with pytest.raises(RuntimeError, match="no"):
        refused(PLAIN)


def test_zeros_without_memory_end_no_process():
    def nearest(x, codebook):
        distances = x.pow(2).sum(1, keepdim=True) - 2 * x @ codebook.t() + codebook.pow(2).sum(1)
        q = torch.nn.functional.embedding(distances.argmin(1), codebook)
        loss = torch.nn.functional.mse_loss(q, x.detach()) + torch.nn.functional.mse_loss(x, q.detach())
        return x + (q - x).detach(), loss

    (verdict,) = audit(nearest, ["(randn(6, 4), randn(8, 4))"], laws=["no_host_read"]).report.verdicts
    assert verdict.status is Status.HOLDS
