"""The law `uninitialized_memory`: what new memory holds decides nothing, and a NaN that is computed is none of it."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

from gradspec import Case, FunctionSpec, Status, verify
from gradspec.laws import LAWS

(LAW,) = (law for law in LAWS if law.name == "uninitialized_memory")


class Scale(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, y_bar):
        return 2 * y_bar


class Unwritten(Scale):
    held = 0.0

    @classmethod
    def backward(cls, ctx, y_bar):
        kept = torch.full_like(y_bar, cls.held)
        del kept  # so that new memory holds it
        x_bar = torch.empty_like(y_bar)
        x_bar[:-1] = 2 * y_bar[:-1]
        return x_bar


class Written(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        return torch.mul(y_bar, 2, out=torch.empty_like(y_bar))


class Undefined(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        return 2 * y_bar * torch.where(y_bar > 0, torch.nan, 1.0)


class Counted(Scale):
    """Gives the number of the call beside its value: memory that nobody wrote, of whole numbers."""

    @staticmethod
    def forward(ctx, x):
        return x * 2, torch.empty(3, dtype=torch.int64)

    @staticmethod
    def backward(ctx, y_bar, _):
        return 2 * y_bar


def found(function, primal=lambda x: 2 * x):
    x = torch.arange(2000, dtype=torch.float64)  # of fewer numbers nobody knows what memory they get
    spec = FunctionSpec(function.apply, name="f", primal=primal, cases=[Case(x)])
    (verdict,) = verify([spec], [LAW], isolate=False).verdicts
    return verdict


@pytest.mark.parametrize("held", [0.0, 7.5, torch.nan])
def test_memory_that_nobody_wrote_is_found_whatever_it_holds(held):
    verdict = found(type("Holds", (Unwritten,), {"held": held}))

    assert verdict.status is Status.BROKEN
    assert verdict.finding.message == "gradient of `x` is memory that nobody wrote in 1 of 2000 elements"


@pytest.mark.parametrize("function", [Scale, Written, Undefined])
def test_memory_that_is_written_and_a_nan_that_is_computed_hold(function):
    assert found(function).status is Status.HOLDS


def test_whole_numbers_are_looked_at_too():
    said = "output 1 is memory that nobody wrote in 3 of 3 elements"

    assert found(Counted, lambda x: (2 * x, torch.zeros(3, dtype=torch.int64))).finding.message == said


def test_the_settings_of_torch_are_as_before():
    torch.use_deterministic_algorithms(True)
    try:
        found(Unwritten)
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.utils.deterministic.fill_uninitialized_memory
    finally:
        torch.use_deterministic_algorithms(False)
