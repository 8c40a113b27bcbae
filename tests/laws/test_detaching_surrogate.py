"""A surrogate that detaches what its gradient depends on has a first derivative only, and its `detach()` is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from gradspec import Case, FunctionSpec, Supports, Verdict, verify
from gradspec.law import Status
from gradspec.laws import LAWS
from gradspec.spec import Make

Function = torch.autograd.Function


class LearnedStep(Function):
    """Quantisation with a learned step: the gradient of the step is made of the rounding residue."""

    @staticmethod
    def forward(ctx: Any, w: Tensor, step: Tensor, low: int, high: int) -> Tensor:
        ctx.save_for_backward(w, step)
        ctx.limits = low, high
        return (w / step).round().clamp(low, high) * step

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        w, step = ctx.saved_tensors
        q = w / step
        inside = (q >= ctx.limits[0]) & (q <= ctx.limits[1])
        slope = torch.where(inside, q.round() - q, q.clamp(*ctx.limits))
        return grad * inside, (grad * slope).sum(), None, None


class NoResidue(LearnedStep):
    """Wrong: the residue has the other sign."""

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        w, step = ctx.saved_tensors
        q = w / step
        inside = (q >= ctx.limits[0]) & (q <= ctx.limits[1])
        slope = torch.where(inside, q - q.round(), q.clamp(*ctx.limits))
        return grad * inside, (grad * slope).sum(), None, None


class CutStep(LearnedStep):
    """Right at first order; of its second derivatives a term is lost, whatever is detached."""

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        of_w, of_step, *rest = LearnedStep.backward(ctx, grad)
        return of_w, of_step * 0.5 + (of_step * 0.5).detach(), *rest


def learned_step(w: Tensor, step: Tensor, low: int, high: int) -> Tensor:
    return (w / step).round().clamp(low, high) * step


def by_detach(w: Tensor, step: Tensor, low: int, high: int) -> Tensor:
    q = (w / step).clamp(low, high)
    return (q + (q.round() - q).detach()) * step


def steps(make: Make) -> Iterator[Case]:
    yield Case(name="weights", args=(3 * make(8), torch.tensor(0.5, dtype=torch.float64), -4, 3))


class Scaled(Function):
    """Straight through, times a factor: nothing that its gradient depends on is detached."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: Tensor) -> Tensor:
        ctx.save_for_backward(x, factor)
        return (x * factor).round()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        x, factor = ctx.saved_tensors
        return grad * factor, (grad * x).sum()


class ScaledCut(Scaled):
    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        x, factor = ctx.saved_tensors
        return grad * factor.detach(), (grad * x.detach()).sum()


def straight_through(x: Tensor, factor: Tensor) -> Tensor:
    y = x * factor
    return y + (y.round() - y).detach()


def factors(make: Make) -> Iterator[Case]:
    yield Case(name="factor", args=(make(5), torch.tensor(1.3, dtype=torch.float64)))


def verdict_of(function: Any, law: str = "second_order", **supports: bool | None) -> Verdict:
    primal: Callable[..., Tensor]
    if issubclass(function, LearnedStep):
        primal, surrogate, wrt, cases = learned_step, by_detach, ("w", "step"), steps
    else:
        primal, surrogate, wrt, cases = (
            lambda x, factor: (x * factor).round(),  # type: ignore[assignment]
            straight_through,  # type: ignore[assignment]
            ("x", "factor"),
            factors,
        )
    spec = FunctionSpec(
        name="quantiser",
        function=function.apply,
        primal=primal,
        surrogate=surrogate,
        wrt=wrt,
        cases=cases,
        supports=Supports.eager(**supports),
    )
    report = verify([spec], [one for one in LAWS if one.name in ("primal", "vjp", law)], isolate=False)
    return next(iter(report.of(law=law)))


def test_a_learned_step_is_right_in_training_and_no_second_derivative_is_asked_for() -> None:
    assert verdict_of(LearnedStep, "vjp").status is Status.HOLDS
    verdict = verdict_of(LearnedStep)

    assert verdict.status is Status.NOT_APPLICABLE
    assert "the surrogate stops by detach() what its gradient depends on" in verdict.finding.message


def test_a_wrong_learned_step_is_broken_at_first_order() -> None:
    assert verdict_of(NoResidue, "vjp").status is Status.BROKEN


def test_where_second_derivatives_are_promised_the_detach_of_the_surrogate_is_named() -> None:
    verdict = verdict_of(LearnedStep, double_backward=True)

    assert verdict.status is Status.BROKEN
    assert (verdict.finding.likely or "").startswith("the detach() of the surrogate, not one in backward")


def test_a_term_that_backward_loses_itself_is_not_put_down_to_the_surrogate() -> None:
    verdict = verdict_of(CutStep, double_backward=True)

    assert verdict.status is Status.BROKEN
    assert "surrogate" not in (verdict.finding.likely or "")


@pytest.mark.parametrize("promised", [None, True])
def test_a_detach_that_the_gradient_does_not_depend_on_leaves_second_derivatives_to_judge(
    promised: bool | None,
) -> None:
    assert verdict_of(Scaled, double_backward=promised).status is Status.HOLDS
    assert verdict_of(ScaledCut, double_backward=promised).status is Status.BROKEN
