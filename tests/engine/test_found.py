"""What a law has found is told, also where the search for its cause takes all the time or ends the interpreter."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest
import torch

from gradspec import Case, FunctionSpec, verify
from gradspec._engine._child import available
from gradspec.law import Status
from gradspec.laws import LAWS
from gradspec.profile import load_profile

VJP = [law for law in LAWS if law.name == "vjp"]

pytestmark = pytest.mark.skipif(not available(), reason="no fork on this machine")


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * g + x.flip(0)


class WrongAndSlow(Wrong):
    @staticmethod
    def backward(ctx, g):
        gradient = Wrong.backward(ctx, g)
        until = time.process_time() + 0.1
        while time.process_time() < until:
            pass
        return gradient


class WrongAndDies(Wrong):
    @staticmethod
    def backward(ctx, g):
        if not bool((ctx.saved_tensors[0] == torch.tensor([1.0, 2.0, 3.0])).all()):
            os.abort()
        return Wrong.backward(ctx, g)


def spec(function):
    def square(x):
        return x * x

    return FunctionSpec(
        name="wrong",
        function=function.apply,
        primal=square,
        surrogate=square,
        wrt=("x",),
        cases=lambda make: [Case(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64))],
    )


@pytest.mark.parametrize("function", [WrongAndSlow, WrongAndDies])
def test_what_is_found_is_told_without_a_cause(function):
    (verdict,) = verify([spec(function)], laws=VJP, profile=replace(load_profile("quick"), time_limit=1.5)).verdicts
    assert verdict.status is Status.BROKEN
    assert "gradient of `x`" in verdict.finding.message
    assert not verdict.finding.likely


class HoldsAndDies(Wrong):
    @staticmethod
    def backward(ctx, g):
        os.abort()


def test_a_death_before_anything_is_found_is_the_finding():
    (verdict,) = verify([spec(HoldsAndDies)], laws=VJP).verdicts
    assert verdict.status is Status.BROKEN
    assert "died of SIGABRT" in verdict.finding.message
