"""A spec may declare the gradient itself: laws of a first derivative judge by it, the others say that none can."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from gradspec import Case, FunctionSpec, Report, Supports, verify
from gradspec.law import Status
from gradspec.laws import LAWS
from gradspec.spec import Formula, Make

Function = torch.autograd.Function
#: What needs more than a first derivative.
OF_A_MAP = ("surrogate", "jvp", "adjoint", "second_order", "forward_over_reverse")


class Ternary(Function):
    """Trained ternary levels: the weight gets its cotangent times its level, which is the gradient of no map."""

    @staticmethod
    def forward(ctx: Any, w: Tensor, up: Tensor, down: Tensor, t: float) -> Tensor:
        ctx.save_for_backward(w, up, down)
        ctx.t = t
        return (w > t) * up - (w < -t) * down

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        (w, up, down), t = ctx.saved_tensors, ctx.t
        a, b = w > t, w < -t
        return grad * (a * up + b * down + ~(a | b)), (a * grad).sum(), -(b * grad).sum(), None


class OfTheWeight(Ternary):
    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        return ctx.saved_tensors[0], *Ternary.backward(ctx, grad)[1:]


class OneSign(Ternary):
    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        of_w, up, down, _ = Ternary.backward(ctx, grad)
        return of_w, up, -down, None


def ternary(w: Tensor, up: Tensor, down: Tensor, t: float) -> Tensor:
    return (w > t) * up - (w < -t) * down


def of_ternary(inputs: Any, output: Tensor, cotangent: Tensor) -> Any:
    w, up, down, t = inputs
    a, b = w > t, w < -t
    return cotangent * (a * up + b * down + ~(a | b)), (a * cotangent).sum(), -(b * cotangent).sum()


def weights(make: Make) -> Iterator[Case]:
    yield Case(name="weights", args=(make(6), make().abs(), make().abs(), 0.3))


TERNARY = FunctionSpec(
    name="ternary",
    function=Ternary.apply,
    primal=ternary,
    gradient=of_ternary,
    wrt=("w", "up", "down"),
    cases=weights,
    supports=Supports.eager(),
)


def report_of(spec: FunctionSpec, *laws: str) -> Report:
    chosen = [law for law in LAWS if (law.name in laws if laws else law.cost == "ms")]
    return verify([spec], laws=chosen, isolate=False)


def test_a_right_function_is_green_and_what_needs_a_map_says_why() -> None:
    report = report_of(TERNARY)

    assert not report.failures
    assert next(iter(report.of(law="vjp"))).status is Status.HOLDS
    for law in OF_A_MAP:
        (verdict,) = report.of(law=law)
        assert verdict.status is Status.NOT_APPLICABLE, law
        assert "declares the gradient itself" in verdict.finding.message


@pytest.mark.parametrize(
    ("function", "likely"),
    [(OfTheWeight, "backward ignores its cotangent"), (OneSign, "sign")],
    ids=["made of the weight", "a sign"],
)
def test_a_wrong_function_is_red_with_its_cause(function: Any, likely: str) -> None:
    first = report_of(TERNARY.for_(function.apply, name="wrong"), "primal", "vjp").failures[0]

    assert first.law == "vjp"
    assert likely in (first.finding.likely or "")


class Clipped(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, most: float) -> Tensor:
        ctx.most = most
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        return grad.clamp(-ctx.most, ctx.most), None


def of_clipped(inputs: Any, output: Tensor, cotangent: Tensor) -> Tensor:
    return cotangent.clamp(-inputs.most, inputs.most)


class Rounded(Clipped):
    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        return grad.round(), None


def one(make: Make) -> Iterator[Case]:
    yield Case(name="one", args=(make(6), 1.5))


def test_a_declared_gradient_need_not_be_linear_in_its_cotangent() -> None:
    spec = FunctionSpec(
        name="clip", function=Clipped.apply, primal=lambda x, most: x, gradient=of_clipped, wrt=("x",), cases=one
    )

    assert not report_of(spec).failures
    broken = {v.law for v in report_of(spec.for_(Rounded.apply, name="rounded")).violations}
    assert {"vjp"} <= broken
    undeclared = FunctionSpec(name="u", function=Clipped.apply, primal=lambda x, most: x, wrt=("x",), cases=one)
    assert "cotangent_linearity" in {v.law for v in report_of(undeclared).violations}


def scaled(xs: list[Tensor], *, factor: float = 2.0) -> tuple[Tensor, Tensor]:
    return xs[0] * factor, xs[1] * factor


def of_scaled(inputs: Any, output: tuple[Tensor, ...], cotangent: tuple[Tensor, ...]) -> dict[str, Any]:
    return {"xs": [factor * inputs.factor for factor in cotangent]}


def test_lists_keywords_and_several_outputs_are_as_in_the_call() -> None:
    def cases(make: Make) -> Iterator[Case]:
        yield Case(name="two", args=([make(2), make(3)],), kwargs={"factor": 3.0})

    spec = FunctionSpec(name="list", function=scaled, primal=scaled, gradient=of_scaled, wrt=("xs",), cases=cases)
    assert not report_of(spec, "primal", "vjp", "precision", "interleaved").failures

    wrong = replace(spec, gradient=lambda inputs, output, cotangent: {"xs": [*cotangent]})
    assert [v.law for v in report_of(wrong, "primal", "vjp").failures] == ["vjp"]


def test_what_is_made_of_first_derivatives_is_judged_under_transforms_too() -> None:
    class Twice(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Tensor) -> Tensor:
            return x.sin()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:  # type: ignore[override]
            (x,) = ctx.saved_tensors
            return grad * (x > 0)

    spec = FunctionSpec(
        name="steps",
        function=Twice.apply,
        primal=lambda x: x.sin(),
        gradient=lambda inputs, output, cotangent: cotangent * (inputs.x > 0),
        wrt=("x",),
        cases=lambda make: iter([Case(name="x", args=(make(3, 2),))]),
        supports=Supports.eager(vmap=True, func_grad=True),
    )
    report = report_of(spec, "vjp", "vmap", "func_grad", "batched_cotangent")

    assert {v.law: str(v.status) for v in report.verdicts} == dict.fromkeys(
        ("vjp", "vmap", "func_grad", "batched_cotangent"), "holds"
    )


def changed(gradient: Any = None, **how: Any) -> Callable[[], FunctionSpec]:
    said = {"name": "t", "function": Ternary.apply, "primal": ternary, "wrt": ("w",), "cases": weights}
    return lambda: FunctionSpec(**{**said, "gradient": gradient, **how})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (changed(of_ternary, surrogate=ternary), "give surrogate or gradient, not both: either says what backward is"),
        (changed(3), "gradient is 3, which cannot be called"),
        (changed(of_ternary, formula=Formula(primal="w", surrogate="w")), "leave formula out"),
    ],
)
def test_a_wrong_declaration_is_refused_in_one_line(make: Callable[[], FunctionSpec], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("gradient", "said"),
    [
        (lambda i, y, g: g.sum(), "the gradient of the spec for w has the shape (), and w has (6,)"),
        (lambda i, y, g: {"W": g}, "the gradient of the spec names 'W', which is not among ('w', 'up', 'down', 't')"),
        (lambda i, y, g: (g,) * 5, "returns 5 gradients, and the call has 4 arguments"),
        (lambda i, y, g: (2.0,), "the gradient of the spec for w is a float, expected a tensor or None"),
        (lambda i, y, g: i.v, "the gradient of the spec raised AttributeError"),
        (lambda x: x, "the gradient of the spec raised TypeError"),
    ],
)
def test_a_gradient_that_is_none_is_a_fault_of_the_spec(gradient: Any, said: str) -> None:
    (verdict,) = report_of(changed(gradient)(), "vjp").verdicts

    assert verdict.status is Status.ERROR
    assert said in verdict.finding.message
