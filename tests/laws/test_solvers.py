"""An iteration that stops at a tolerance is told from a gradient that is wrong by as little."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from gradspec import audit
from gradspec.laws import LAWS
from gradspec.laws.tensor.support._jumps import LINES, jump_of, known_not_to_jump

LINEARITY = [law for law in LAWS if law.name == "cotangent_linearity"]
SURROGATE = [law for law in LAWS if law.name == "surrogate"]
CASES = ("(randn(3),)", pytest.param("(randn(4, 5),)", marks=pytest.mark.slow))


def solver(tolerance: float, factor: float = 1.0) -> type:
    """Return the solver of y = a + cos(y) / 2, whose gradient is that of the limit, times a factor."""

    class FixedPoint(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            y = a.clone()
            for _ in range(200):
                new = a + torch.cos(y) / 2
                off, y = float((new - y).abs().max()), new
                if off < tolerance:
                    break
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            (y,) = ctx.saved_tensors
            return factor * grad / (1 + torch.sin(y) / 2)

    return FixedPoint


def smooth(factor: float) -> type:
    class Smooth(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.tanh() + x.relu()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return factor * grad * (1 - x.tanh() ** 2 + (x > 0))

    return Smooth


def ranks(function: type, case: str) -> set[str]:
    return {verdict.finding.rank for verdict in audit(function, [case], laws=SURROGATE).report.violations}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("tolerance", [1e-6, *(pytest.param(one, marks=pytest.mark.slow) for one in (1e-10, 1e-13))])
def test_a_solver_is_not_accused(tolerance: float, case: str) -> None:
    assert ranks(solver(tolerance), case) <= {"waste"}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow
@pytest.mark.parametrize("tolerance", [1e-6, 1e-10])
def test_a_solver_whose_gradient_is_off_by_more_is(tolerance: float, case: str) -> None:
    assert ranks(solver(tolerance, 1.001), case) == {"wrong"}


@pytest.mark.parametrize("case", CASES)
def test_a_function_that_bends_and_does_not_jump_is_held_to_its_digits(case: str) -> None:
    assert ranks(smooth(1 + 1e-6), case) == {"wrong"}


@pytest.mark.parametrize(
    ("function", "jump"),
    [
        (math.sin, 0.0),
        (abs, 0.0),
        (lambda t: max(t - 0.123, 0.0), 0.0),
        (lambda t: 1e-3 / (t - 1.2345), 0.0),
        (lambda t: 1e-7 * math.floor(3 * t), 1e-7),
    ],
    ids=["smooth", "a bend", "a bend aside", "a pole", "steps"],
)
def test_a_jump_is_measured(function, jump: float) -> None:
    assert jump_of(function, size=1.0) == pytest.approx(jump, rel=0.1)


def test_a_jump_that_could_not_explain_an_error_is_not_looked_for() -> None:
    calls = []

    def steps(t: float) -> float:
        calls.append(t)
        return 1e-7 * math.floor(3 * t)

    assert jump_of(steps, size=1.0) == pytest.approx(1e-7, rel=0.1)
    calls.clear()
    assert jump_of(steps, size=1.0, least=1e-5) == 0
    assert len(calls) == sum(2 + points for _, points in LINES)  # two say what a line costs
    calls.clear()
    with known_not_to_jump():
        assert jump_of(steps, size=1.0) == 0
    assert not calls


def test_what_iterates_without_an_end_in_sight_is_not_searched() -> None:
    calls = []

    def slow(t: float) -> float:
        calls.append(t)
        x = torch.ones(())
        for _ in range(20_000):
            x = x + 0.0
        return 1e-7 * math.floor(3 * t) * float(x)

    assert jump_of(slow, size=1.0) == 0
    assert len(calls) == 2


def _conjugate_gradients(a: Tensor, b: Tensor, tolerance: float) -> Tensor:
    x = torch.zeros_like(b)
    residual = b - a @ x
    p = residual
    for _ in range(1000):
        if residual.norm() <= tolerance:
            break
        step = residual.dot(residual) / p.dot(a @ p)
        x, new = x + step * p, residual - step * (a @ p)
        p, residual = new + new.dot(new) / residual.dot(residual) * p, new
    return x


class Solves(torch.autograd.Function):
    """Solves a x = b for a symmetric a: for another one it does not end before its limit."""

    times = 1.0

    @staticmethod
    def forward(ctx, a, b, tolerance):
        x = _conjugate_gradients(a, b, tolerance)
        ctx.save_for_backward(a, x)
        ctx.tolerance = tolerance
        return x

    @classmethod
    def backward(cls, ctx, grad):
        a, x = ctx.saved_tensors
        v = cls.times * _conjugate_gradients(a, grad, ctx.tolerance)
        return -torch.outer(v, x), v, None


class SolvesWrongly(Solves):
    times = 1.001


@pytest.mark.parametrize(
    ("function", "ranked"), [(Solves, {"waste"}), pytest.param(SolvesWrongly, {"wrong"}, marks=pytest.mark.slow)]
)
def test_a_gradient_that_is_right_for_a_smaller_tolerance_is_right(function: type, ranked: set[str]) -> None:
    torch.manual_seed(0)
    q = torch.randn(6, 6, dtype=torch.float64)
    found = audit(
        function, [(q @ q.T + 6 * torch.eye(6, dtype=torch.float64), torch.randn(6).double(), 1e-6)], laws=SURROGATE
    )

    assert {verdict.finding.rank for verdict in found.report.violations} == ranked
    if function is Solves:
        assert "right for a smaller `tolerance`" in found.report.verdicts[0].finding.message


def solver_of_the_adjoint(tolerance: float, change: Callable[[Tensor], Tensor]) -> type:
    """Return the solver of y = a + cos(y) / 2, whose backward is an iteration too, for a cotangent that is changed."""

    class Adjoint(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            y = a.clone()
            for _ in range(200):
                y = a + torch.cos(y) / 2
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            (y,) = ctx.saved_tensors
            grad = change(grad)
            found = grad.clone()
            for _ in range(200):
                new = grad - found * torch.sin(y) / 2
                off, found = float((new - found).abs().max()), new
                if off < tolerance:
                    break
            return found

    return Adjoint


CHANGES = {
    "as it is": lambda grad: grad,
    "rounded": lambda grad: grad.bfloat16().double(),
    "clipped": lambda grad: grad.clamp(-500, 500),
    "normalised": lambda grad: grad / grad.norm(),
}


@pytest.mark.parametrize("tolerance", [1e-4, pytest.param(1e-7, marks=pytest.mark.slow), 0.0])
@pytest.mark.parametrize(
    "change", [pytest.param(one, marks=pytest.mark.slow if one == "rounded" else ()) for one in CHANGES]
)
def test_a_backward_that_stops_at_a_tolerance_is_linear_up_to_it(change: str, tolerance: float) -> None:
    verdicts = audit(solver_of_the_adjoint(tolerance, CHANGES[change]), ["(randn(3),)"], laws=LINEARITY).report.verdicts
    found = [(verdict.finding.rank, verdict.finding.message.partition(",")[0]) for verdict in verdicts]
    if change != "as it is":
        assert [rank for rank, _ in found] == ["wrong"]
    elif tolerance:
        assert found[0][0] == "waste"
        assert "as an iteration that stops at a tolerance" in verdicts[0].finding.message
    else:
        assert found == [("", "")]


class BesideAPole(torch.autograd.Function):
    """The variance with reliability weights; the gradient of its degrees of freedom misses a term."""

    @staticmethod
    def forward(ctx, x, weight):
        total = weight.sum()
        centred = x - (x * weight).sum(-1, keepdim=True) / total
        freedom = total - (weight**2).sum() / total
        variance = (weight * centred**2).sum(-1) / freedom
        ctx.save_for_backward(centred, weight, variance, freedom)
        return variance

    @staticmethod
    def backward(ctx, grad):
        centred, weight, variance, freedom = ctx.saved_tensors
        slope = 1 - 2 * weight / weight.sum()
        of_weight = (grad[:, None] * (centred**2 - variance[:, None] * slope)).sum(0) / freedom
        return grad[:, None] * 2 * weight * centred / freedom, of_weight


def test_a_pole_is_no_jump_of_an_iteration() -> None:
    (verdict,) = audit(BesideAPole, ["(randn(2, 5), 0.5 + rand(5))"], laws=SURROGATE, seed=0).report.verdicts
    assert verdict.finding.rank == "wrong"


class Equilibrium(torch.nn.Module):
    """z = tanh(W z + x); a hook replaces the gradient by that of the fixed point, times a factor."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor
        self.weight = torch.nn.Parameter(
            torch.tensor([[0.25, -0.5, 0.125], [0.375, 0.125, -0.25], [-0.125, 0.5, 0.25]])
        )

    def cell(self, z: Tensor, x: Tensor) -> Tensor:
        return torch.tanh(z @ self.weight.T + x)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            z = torch.zeros_like(x)
            for _ in range(60):
                z = self.cell(z, x)
        z = self.cell(z, x)
        if not z.requires_grad:
            return z
        start = z.detach().requires_grad_()
        step = self.cell(start, x)

        def implicit(grad: Tensor) -> Tensor:
            u = grad
            for _ in range(60):
                u = torch.autograd.grad(step, start, u, retain_graph=True)[0] + grad
            return self.factor * u

        z.register_hook(implicit)
        return z


@pytest.mark.parametrize(("factor", "found"), [(1.0, set()), (0.5, {"wrong"})])
def test_a_hook_that_differentiates_behind_a_detach_does_not_call_itself(factor: float, found: set[str]) -> None:
    report = audit(Equilibrium(factor), ["(randn(2, 3),)"], laws=SURROGATE).report
    assert {verdict.finding.rank for verdict in report.violations} == found
    assert [verdict.finding.message for verdict in report.verdicts if verdict.finding.is_cut_off] == []
