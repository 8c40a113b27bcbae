"""Functions of spikes: 0 and 1, times that are whole numbers, and outputs in float32 whatever they are given."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

from gradspec import FunctionSpec, verify
from gradspec.law import Rank, Status
from gradspec.laws.tensor.support._bound import RoundedOperations, Units


def times(s, n):
    """Return the first times at which there is a spike, counted from 0."""
    at = s * torch.arange(1, len(s) + 1, dtype=s.dtype)[:, None] - 1.0
    return torch.where(at == -1.0, torch.inf, at).sort(0).values[:n]


def minus_one(inputs, output, cotangent):
    found = output.isfinite()
    index = torch.where(found, output, 0).long()
    return {"s": torch.zeros_like(inputs.s).scatter_add(0, index, torch.where(found, -cotangent, 0))}


class Times(Function):
    wrong = 1.0

    @staticmethod
    def forward(ctx, s, n):
        at = times(s, n)
        ctx.save_for_backward(at, s)
        return at

    @classmethod
    def backward(cls, ctx, g):
        at, s = ctx.saved_tensors
        found = at.isfinite()
        index = torch.where(found, at, 0).long()
        return cls.wrong * torch.zeros_like(s).scatter_add(0, index, torch.where(found, -g, 0)), None


class WrongTimes(Times):
    wrong = 1.5


RAGGED = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize("spikes", [torch.ones(5, 2), RAGGED, RAGGED.double()])
@pytest.mark.parametrize("function", [Times, WrongTimes])
def test_whole_numbers_are_not_rounded_on_the_way(function, spikes):
    spec = FunctionSpec(function.apply, times, gradient=minus_one, cases=[(spikes, 2)])
    report = verify([spec], laws=["primal", "vjp", "precision"])

    broken = {verdict.law for verdict in report.verdicts if verdict.finding.is_failure}
    assert ("vjp" in broken) if function is WrongTimes else not broken


def test_an_operation_on_whole_numbers_gives_one_and_any_other_is_rounded():
    units = Units.of(torch.float32, torch.float32)
    whole, half = torch.arange(5.0, dtype=torch.float64), torch.arange(5.0, dtype=torch.float64) / 3

    with RoundedOperations(units, 0):
        of_whole, of_half, large = 3 * whole - 1, 3 * half - 1, whole + 2.0**25

    assert torch.equal(of_whole, torch.tensor([-1.0, 2.0, 5.0, 8.0, 11.0], dtype=torch.float64))
    assert not torch.equal(of_half, 3 * half - 1)
    assert not torch.equal(large, whole + 2.0**25)


class Spike(Function):
    """Answer in float32, as spiking libraries do."""

    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return (x > 0).float()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.exp(-ctx.k * x.abs()), None


def test_a_cotangent_has_the_dtype_of_the_output_in_each_law():
    spec = FunctionSpec(
        Spike.apply,
        lambda x, k: (x > 0).float(),
        surrogate=lambda x, k: x.sign() * (1 - torch.exp(-k * x.abs())) / k,
        cases=lambda make: [(make(4), 1.0)],
    )
    report = verify([spec], laws=["vjp", "needs_input_grad", "layout"])

    assert not [verdict.law for verdict in report.verdicts if verdict.finding.is_failure]


class Steep(Spike):
    """Scale a cotangent of float32 before it is widened: the digits of the output are lost, and no more."""

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 25 * torch.exp(-ctx.k * x.abs()), None


class TooSteep(Steep):
    @staticmethod
    def backward(ctx, g):
        return 1.001 * Steep.backward(ctx, g)[0], None


@pytest.mark.parametrize(("function", "rank"), [(Steep, Rank.WASTE), (TooSteep, Rank.WRONG)])
def test_what_an_output_of_float32_rounds_is_waste(function, rank):
    spec = FunctionSpec(
        function.apply,
        lambda x, k: (x > 0).float(),
        surrogate=lambda x, k: 25 * x.sign() * (1 - torch.exp(-k * x.abs())) / k,
        cases=lambda make: [(make(2, 4), 1.0)],
    )
    (verdict,) = verify([spec], laws=["vjp"]).of(law="vjp")

    assert verdict.finding.rank == rank
    assert ("float32" in verdict.finding.likely) == (rank is Rank.WASTE)


class Spread(Times):
    """Write the gradient at the times that it was given: those of whole spikes are whole."""

    @staticmethod
    def backward(ctx, g):
        at, s = ctx.saved_tensors
        rows, columns = at.shape
        out = torch.zeros_like(s)
        out[at.flatten().long(), torch.arange(columns).repeat(rows)] = -g.flatten()
        return out, None


def test_other_values_of_a_batch_are_whole_where_its_own_are():
    spec = FunctionSpec(
        Spread.apply,
        times,
        gradient=lambda inputs, y, v: {"s": torch.zeros_like(inputs.s).scatter_add(0, y.long(), -v)},
        cases=[(torch.ones(5, 2, dtype=torch.float64), 2)],
    )
    (verdict,) = verify([spec], laws=["dynamic_shapes"]).of(law="dynamic_shapes")

    assert verdict.status is Status.HOLDS
