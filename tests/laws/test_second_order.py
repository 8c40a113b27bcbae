"""Higher derivatives: what is compared, and what torch's own errors and rounding must not be taken for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor
from torch.autograd import Function

from gradspec import Case, FunctionSpec, Status, Supports, verify
from gradspec.functions import INSTANCE_DISCRIMINATION_LOSS, LINEAR_CROSS_ENTROPY
from gradspec.law import Verdict
from gradspec.laws import LAWS
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._penalty import is_no_slope

LAW = {law.name: law for law in LAWS}
ASKED = [LAW[name] for name in ("primal", "vjp", "second_order")]
EAGER = Supports.all(**{**Supports.eager().__dict__, "double_backward": True})


def judged(function: Callable[..., Any], primal: Callable[..., Any], wrt: tuple[str, ...], *args: Any) -> Verdict:
    spec = FunctionSpec(
        name="s",
        function=function,
        primal=primal,
        surrogate=primal,
        wrt=wrt,
        cases=lambda make: iter([Case(name="one", args=args)]),
        supports=EAGER,
    )
    (verdict,) = verify([spec], ASKED).of(law="second_order")
    return verdict


def drawn(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3), dtype=dtype)


class Standardized(Function):
    """(x - mean) / deviation over the first dimension; its backward is plain torch, right in each order."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return plainly_standardized(x)

    @staticmethod
    def backward(ctx: Any, v: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        scale = (x.var(0, unbiased=False) + 1e-5).rsqrt()
        y = (x - x.mean(0)) * scale
        return scale * (v - v.mean(0) - y * (v * y).mean(0))


def plainly_standardized(x: Tensor) -> Tensor:
    return (x - x.mean(0)) * (x.var(0, unbiased=False) + 1e-5).rsqrt()


def by_batch_norm(x: Tensor) -> Tensor:
    return F.batch_norm(x, None, None, training=True)


def test_a_third_derivative_of_torch_that_is_not_its_slope_is_not_held_against_a_function() -> None:
    assert judged(Standardized.apply, plainly_standardized, ("x",), drawn(5, 3)).status is Status.HOLDS
    assert judged(Standardized.apply, by_batch_norm, ("x",), drawn(5, 3)).status is Status.HOLDS


@pytest.mark.parametrize(
    ("order", "is_wrong"), [pytest.param("second", False, marks=pytest.mark.slow), ("third", True)]
)
def test_the_third_derivative_of_batch_norm_is_not_its_slope(order: str, is_wrong: bool) -> None:
    inputs = Inputs({"x": drawn(5, 3)}, ("x",))
    name = f"{order} derivative with respect to `x`"
    assert is_no_slope(by_batch_norm, inputs, 0, name) is is_wrong
    assert not is_no_slope(plainly_standardized, inputs, 0, name)


class Square(Function):
    """x^2, with a right derivative."""

    slope = 2.0

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**2

    @classmethod
    def backward(cls, ctx: Any, v: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return cls.slope * x * v


class WrongSlope(Square):
    """x^2, whose derivative is off by 1 %."""

    slope = 2.02


def cube_by(square: type[Function]) -> Callable[..., Any]:
    """Return x^3 by a Function whose backward depends on x by another Function."""

    class Cube(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, v: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return 3 * square.apply(x) * v

    return Cube.apply


def test_a_wrong_function_in_backward_is_seen_with_a_reference_that_is_right() -> None:
    assert judged(cube_by(Square), lambda x: x**3, ("x",), drawn(4)).status is Status.HOLDS
    wrong = judged(cube_by(WrongSlope), lambda x: x**3, ("x",), drawn(4))
    assert wrong.status is Status.BROKEN
    assert wrong.finding.message.startswith("second derivative with respect to `x` differs")


class TwoTurns(Function):
    """Two outputs, each of one argument: an order in which one is gone is None here, and zeros elsewhere."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        return 2 * x, 3 * z

    @staticmethod
    def backward(ctx: Any, v: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        return 2 * v, 3 * u


def together(x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    both = torch.cat((2 * x, 3 * z))
    return both[: len(x)], both[len(x) :]


def test_no_gradient_and_a_gradient_of_zeros_are_differentiated_alike() -> None:
    found = judged(TwoTurns.apply, together, ("x", "z"), drawn(3), drawn(4))
    assert found.status is Status.HOLDS, found.finding


class Normed(Function):
    """The layer norm of a row in single precision."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return F.layer_norm(x, x.shape[-1:])

    @staticmethod
    def backward(ctx: Any, v: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        scale = (x.var(-1, unbiased=False, keepdim=True) + 1e-5).rsqrt()
        y = (x - x.mean(-1, keepdim=True)) * scale
        return scale * (v - v.mean(-1, keepdim=True) - y * (v * y).mean(-1, keepdim=True))


@pytest.mark.parametrize("seed", range(3))
def test_single_precision_loses_digits_with_each_order(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(4, 6, generator=generator)

    def primal(x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()

    found = judged(Normed.apply, primal, ("x",), x)
    assert found.status is Status.HOLDS, found.finding


@pytest.mark.parametrize(
    ("spec", "seed"),
    [(INSTANCE_DISCRIMINATION_LOSS, 56), pytest.param(LINEAR_CROSS_ENTROPY, 58, marks=pytest.mark.slow)],
)
def test_a_third_derivative_that_torch_itself_rounds_to_few_digits_is_no_mistake(spec: FunctionSpec, seed: int) -> None:
    # A row is certain of another class than its own: its third derivative is what is left of terms near 1e8 in torch's
    # log_softmax, and depends on no argument, so calls near the case with the same cotangents round as it does.
    report = verify([spec], [LAW["second_order"]], case="large logits", seed=seed, isolate=False)

    assert [v.status for v in report.verdicts] == [Status.HOLDS], report.verdicts
