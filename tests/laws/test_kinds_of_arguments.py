"""What people call functions with beside tensors of numbers: each kind with a right function, and a wrong one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from gradspec import Case, FunctionSpec, Supports, audit, read_case, verify
from gradspec.law import Status
from gradspec.laws import LAWS

Function = torch.autograd.Function
FAST = [law for law in LAWS if law.judges("function") and law.cost == "ms"]
DOUBLE = torch.float64


def off_by(function: Any, place: int) -> Any:
    """Return a Function whose gradient for one argument has the wrong sign."""

    class Wrong(function):  # type: ignore[misc]
        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            found = [*function.backward(ctx, grad)]
            found[place] = -found[place]
            return tuple(found)

    return Wrong


class Relu(Function):
    """In place, as a network calls it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        x.clamp_(min=0)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        (y,) = ctx.saved_tensors
        return (grad * (y > 0),)


class Product(Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        a, b = ctx.saved_tensors
        return grad * b, grad * a


class Dequantised(Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, scale: Tensor) -> Tensor:
        ctx.save_for_backward(q)
        return q.to(scale.dtype) * scale

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        (q,) = ctx.saved_tensors
        return None, (grad * q.to(grad.dtype)).sum()


class SparseProduct(Function):
    @staticmethod
    def forward(ctx: Any, m: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(m)
        return m @ x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        (m,) = ctx.saved_tensors
        return None, m.to_dense().mT @ grad


class Spike(Function):
    """A step at a threshold that learns, with the derivative of a sigmoid."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, threshold: Tensor) -> Tensor:
        ctx.save_for_backward(x, threshold)
        return (x > threshold).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        x, threshold = ctx.saved_tensors
        s = torch.sigmoid(4 * (x - threshold))
        of_x = grad * 4 * s * (1 - s)
        return of_x, -of_x.sum()


@dataclass
class Config:
    gain: float


class Reduced(Function):
    """With a word and an object among its arguments."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, how: str, config: Config) -> Tensor:
        ctx.save_for_backward(x)
        ctx.how, ctx.gain = how, config.gain
        return reduced(x, how, config)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        return 2 * x * ctx.gain * grad / (1 if ctx.how == "sum" else x.numel()), None, None


def reduced(x: Tensor, how: str, config: Config) -> Tensor:
    y = config.gain * x**2
    return y.sum() if how == "sum" else y.mean()


def spec(function: Callable[..., Any], primal: Callable[..., Any], cases: Any, **how: Any) -> FunctionSpec:
    how = {"supports": Supports.eager(autocast=None), **how}
    return FunctionSpec(function, primal, name="kind", cases=cases, **how)


def in_place(function: Any) -> FunctionSpec:
    return spec(lambda x: function.apply(x.clone()), lambda x: x.relu(), lambda make: [make(5)])


def called_twice_with_one(function: Any) -> FunctionSpec:
    return spec(lambda x: function.apply(x, x), lambda x: x * x, lambda make: [make(4)])


def stored_as(dtype: torch.dtype) -> Callable[[Any], FunctionSpec]:
    def made(function: Any) -> FunctionSpec:
        q = torch.tensor([1.0, 3.0, 2.0]).to(dtype)
        return spec(function.apply, lambda q, scale: q.to(scale.dtype) * scale, [(q, torch.tensor(0.5, dtype=DOUBLE))])

    return made


def sparse(function: Any) -> FunctionSpec:
    def cases(make: Any) -> Iterator[Case]:
        yield Case(torch.tensor([[0.0, 2.0, 0], [1, 0, 0]], dtype=DOUBLE).to_sparse(), make(3, 2))

    return spec(function.apply, lambda m, x: m @ x, cases, wrt=("x",))


def learned_threshold(function: Any) -> FunctionSpec:
    surrogate = lambda x, threshold: torch.sigmoid(4 * (x - threshold))  # noqa: E731
    step = lambda x, threshold: (x > threshold).to(x.dtype)  # noqa: E731
    return spec(function.apply, step, lambda make: [(make(5), make())], surrogate=surrogate)


def objects(function: Any) -> FunctionSpec:
    calls = lambda make: [(make(5), how, Config(2.0)) for how in ("sum", "mean")]  # noqa: E731
    return spec(function.apply, reduced, calls)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "function", "place"),
    [
        pytest.param(in_place, Relu, 0, id="in place"),
        pytest.param(called_twice_with_one, Product, 1, id="one tensor twice"),
        pytest.param(stored_as(torch.uint8), Dequantised, 1, id="uint8"),
        pytest.param(stored_as(torch.int8), Dequantised, 1, id="int8"),
        pytest.param(stored_as(torch.float8_e4m3fn), Dequantised, 1, id="float8"),
        pytest.param(sparse, SparseProduct, 1, id="sparse"),
        pytest.param(learned_threshold, Spike, 1, id="a threshold that learns"),
        pytest.param(objects, Reduced, 0, id="a word and an object"),
    ],
)
def test_the_right_function_is_green_and_the_wrong_one_red(
    made: Callable[[Any], FunctionSpec], function: Any, place: int
) -> None:
    assert [(v.law, v.finding.message) for v in verify([made(function)], FAST, isolate=False).failures] == []
    first = verify([made(off_by(function, place))], FAST, isolate=False).failures[0]
    assert first.law == "vjp"


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "uint8", "int8"])
def test_a_call_in_text_may_have_8_bits_and_no_gradient_is_asked_of_them(dtype: str) -> None:
    text = f"(tensor([1, 3, 2], dtype={dtype}), tensor(0.5))"
    assert read_case(text).args[0].dtype is getattr(torch, dtype)

    laws = [law for law in FAST if law.name in ("primal", "surrogate", "vjp", "inputs_untouched")]
    right, wrong = (audit(f, [text], laws=laws).report for f in (Dequantised, off_by(Dequantised, 1)))
    assert not right.failures
    assert [v.law for v in wrong.failures] == ["surrogate"]


class Opposed(torch.autograd.Function):
    """The sum of its outputs does not depend on its argument, as of a softmax with a temperature."""

    @staticmethod
    def forward(ctx, t):
        return torch.stack([2 * t, -2 * t])

    @staticmethod
    def backward(ctx, y_bar):
        return 2 * y_bar[0] - 2 * y_bar[1]


def test_a_number_that_no_sum_of_the_outputs_shows_is_judged():
    spec = FunctionSpec(Opposed.apply, lambda t: torch.stack([2 * t, -2 * t]), cases=lambda make: [make()])
    (verdict,) = verify([spec], laws=["scalar"], isolate=False).verdicts

    assert (verdict.status, verdict.finding.message) == (Status.HOLDS, "")
