"""A gradient that vanishes may be off by rounding; one that is small by nature may not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from gradspec import Case, FunctionSpec, Status, Supports, verify
from gradspec.law import Rank
from gradspec.laws import LAWS
from gradspec.operators import INSTANCE_DISCRIMINATION_LOSS_OPERATOR

LAW = {law.name: law for law in LAWS}
SATURATED = 50 * torch.tensor([0.9, -0.3, 0.2], dtype=torch.float64)


class Softmax(torch.autograd.Function):
    """The softmax with the backward of every textbook, times a mistake."""

    mistake = 1.0

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        p = (x - x.max()).exp()
        ctx.save_for_backward(p / p.sum())
        return p / p.sum()

    @classmethod
    def backward(cls, ctx: Any, v: Tensor) -> Tensor:
        (p,) = ctx.saved_tensors
        return cls.mistake * (v * p - p * (v * p).sum())


class TwiceSoftmax(Softmax):
    """Off by a factor everywhere."""

    mistake = 2.0


class Thermal(torch.autograd.Function):
    """The energy of a temperature: small by nature."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return 1.380649e-23 * x

    @staticmethod
    def backward(ctx: Any, v: Tensor) -> Tensor:
        return 2 * 1.380649e-23 * v


def said(function: Any, primal: Any, *args: Tensor) -> dict[str, Status]:
    spec = FunctionSpec(
        name="s",
        function=function,
        primal=primal,
        surrogate=primal,
        wrt=("x",),
        cases=lambda make: iter([Case(name=str(k), args=(x,)) for k, x in enumerate(args)]),
        supports=Supports.eager(),
    )
    return {v.case: v.status for v in verify([spec], [LAW["primal"], LAW["vjp"]]).of(law="vjp")}


def by_log_sum_exp(x: Tensor) -> Tensor:
    return (x - x.logsumexp(0)).exp()


def test_what_rounding_leaves_of_a_gradient_that_vanishes_is_right() -> None:
    assert said(Softmax.apply, by_log_sum_exp, SATURATED, SATURATED / 50) == {"0": Status.HOLDS, "1": Status.HOLDS}


def test_a_factor_is_seen_where_the_gradient_does_not_vanish() -> None:
    assert said(TwiceSoftmax.apply, by_log_sum_exp, SATURATED, SATURATED / 50)["1"] is Status.BROKEN


@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_a_gradient_that_is_small_by_nature_is_compared_digit_by_digit(scale: float) -> None:
    found = said(Thermal.apply, lambda x: 1.380649e-23 * x, scale * torch.ones(3, dtype=torch.float64))
    assert found == {"0": Status.BROKEN}


@pytest.mark.parametrize("seed", [1, 73])
def test_one_output_alone_may_be_worse_conditioned_than_all(seed):
    law, spec = LAW["undefined_cotangent"], INSTANCE_DISCRIMINATION_LOSS_OPERATOR

    report = verify([spec], [law], seed=seed, case="temperature 0.2", isolate=False)

    assert [v.status for v in report.of(law="undefined_cotangent")] == [Status.HOLDS]


@pytest.mark.parametrize("mistake", [1e-6, float("nan")])
def test_a_mistake_in_one_output_alone_is_no_rounding(mistake):
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
            ctx.save_for_backward(x)
            ctx.set_materialize_grads(False)
            return x.sin(), x.cos()

        @staticmethod
        def backward(ctx: Any, v: Tensor | None, w: Tensor | None) -> Tensor:
            (x,) = ctx.saved_tensors
            if v is None:
                return -x.sin() * w * torch.tensor([1 + mistake, 1.0, 1.0], dtype=x.dtype)
            return v * x.cos() - (0 if w is None else w * x.sin())

    def both(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.sin(), x.cos()

    spec = FunctionSpec(
        name="two",
        function=Two.apply,
        primal=both,
        surrogate=both,
        wrt=("x",),
        cases=lambda make: iter([Case(name="one", args=(SATURATED / 50,))]),
        supports=Supports.eager(),
    )

    report = verify([spec], [LAW["undefined_cotangent"]], isolate=False)

    assert [v.status for v in report.of(law="undefined_cotangent")] == [Status.BROKEN]


class ScaledSine(torch.autograd.Function):
    """The sine of 3 x, with a backward that is off by a share."""

    share = 0.0

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return (3 * x).sin()

    @classmethod
    def backward(cls, ctx: Any, v: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return v * cls.differentiated(x) * (1 + cls.share)

    @staticmethod
    def differentiated(x: Tensor) -> Tensor:
        return 3 * (3 * x).cos()


class Cancelling(ScaledSine):
    """The same, with a backward whose terms are a hundred thousand times as large as their sum."""

    @staticmethod
    def differentiated(x: Tensor) -> Tensor:
        far = 1e5 * x.square().exp()
        return (far + 3 * (3 * x).cos()) - far


class OffByLittle(ScaledSine):
    """Off by as little in each precision, if it has the digits."""

    share = 2e-11


def judged_by_vjp(function: Any) -> Status:
    x = torch.tensor([0.3, -0.7, 1.1], dtype=torch.float64)
    return said(function, lambda x: (3 * x).sin(), x)["0"]


def test_a_difference_that_shrinks_with_the_unit_of_rounding_is_rounding() -> None:
    assert judged_by_vjp(Cancelling.apply) is Status.HOLDS


def test_digits_that_a_function_loses_and_its_reference_does_not_are_for_the_law_of_precision_to_say() -> None:
    x = torch.tensor([0.3, -0.7, 1.1], dtype=torch.float64)
    spec = FunctionSpec(
        name="s",
        function=Cancelling.apply,
        primal=lambda x: (3 * x).sin(),
        surrogate=lambda x: (3 * x).sin(),
        wrt=("x",),
        cases=lambda make: iter([Case(name="one", args=(x,))]),
        supports=Supports.eager(),
    )
    (found,) = verify([spec], [LAW["primal"], LAW["vjp"], LAW["precision"]]).of(law="precision")

    assert (found.status, found.finding.rank) == (Status.BROKEN, Rank.WASTE)
    assert "less accurate than the reference in float32" in found.finding.message


def test_a_difference_that_is_as_large_in_single_precision_is_a_mistake() -> None:
    assert judged_by_vjp(OffByLittle.apply) is Status.BROKEN
