"""A spec is quick to write: positional forms, a list of calls, and names that are read off; a wrong form says which."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from gradspec import Accuracy, Case, FunctionSpec, ModuleSpec, OperatorSpec, verify
from gradspec._registry._registry import resolve
from gradspec.law import Status
from gradspec.laws import LAWS
from gradspec.spec._maker import Maker

VALUE_AND_GRADIENT = [law for law in LAWS if law.name in ("primal", "vjp")]


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.factor = factor
        return factor * x**3

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        return 3 * ctx.factor * x**2 * grad, None


class Wrong(Cube):
    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        return 2 * ctx.factor * x**2 * grad, None


def cube(x: Tensor, factor: float = 1.0) -> Tensor:
    return factor * x**3


x = torch.tensor([0.5, -1.5], dtype=torch.float64)


def names(spec: FunctionSpec) -> list[str]:
    return [case.name for case in spec.cases(Maker(0, "cpu"))]


def test_the_smallest_spec_finds_what_is_wrong_and_nothing_else() -> None:
    right = FunctionSpec(Cube.apply, cube, cases=[(x, 0.5)])
    wrong = FunctionSpec(Wrong.apply, cube, cases=[(x, 0.5)])

    assert (right.name, right.wrt, names(right)) == ("Cube", ("x",), ["float64[2], 0.5"])
    assert not verify([right], VALUE_AND_GRADIENT).failures
    assert [(v.spec, v.law) for v in verify([wrong], VALUE_AND_GRADIENT).failures] == [("Wrong", "vjp")]


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([(x, 0.5), (x, 0.5), Case(x, 2.0)], ["float64[2], 0.5", "float64[2], 0.5 (2)", "float64[2], 2.0"]),
        (lambda make: [make(3), (make(1, 2), 1.0)], ["float64[3]", "float64[1, 2], 1.0"]),
        (lambda make: iter([Case(make(3), factor=2.0)]), ["float64[3], factor=2.0"]),
        ([x, Case(name="half", args=(x, 0.5))], ["float64[2]", "half"]),
    ],
)
def test_cases_are_calls_in_a_list_or_drawn(calls: Any, expected: list[str]) -> None:
    assert names(FunctionSpec(Cube.apply, cube, cases=calls)) == expected


def test_names_that_somebody_wrote_are_not_numbered() -> None:
    spec = FunctionSpec(Cube.apply, cube, cases=[Case(x, 0.5, name="a"), Case(x, 1.0, name="a")])

    with pytest.raises(ValueError, match="two cases named 'a'"):
        verify([spec], VALUE_AND_GRADIENT)


def test_a_list_of_calls_is_on_the_device_of_the_run_and_without_a_graph() -> None:
    spec = FunctionSpec(Cube.apply, cube, cases=[(x.clone().requires_grad_(), 0.5), Case(x, 2.0)])
    (first, second) = spec.cases(Maker(0, "meta"))

    assert (first.args[0].device.type, second.args[0].device.type) == ("meta", "meta")
    assert not first.args[0].requires_grad


def test_a_case_is_the_same_in_each_form() -> None:
    forms = (Case("sum", 0.5, dim=1), Case(args=("sum", 0.5), kwargs={"dim": 1}), Case("sum", 0.5, kwargs={"dim": 1}))

    assert {case.name for case in forms} == {"'sum', 0.5, dim=1"}
    assert forms[0] == forms[1] == forms[2]
    assert replace(forms[0], name="a") == Case(name="a", args=("sum", 0.5), kwargs={"dim": 1})


def of(primal: Callable[..., Any], *calls: Any, **how: Any) -> tuple[str, ...]:
    return FunctionSpec(primal, primal, name="s", cases=[*calls], **how).wrt


def test_wrt_is_what_the_surrogate_depends_on() -> None:
    def levels(w: Tensor, level: Tensor, index: Tensor, xs: list[Tensor]) -> Tensor:
        return (w > 0) * level + xs[1][index]

    call = (x, x, torch.tensor([0, 1]), [x, x])
    assert of(levels, call) == ("level", "xs")
    assert of(levels, call, surrogate=lambda w, level, index, xs: w + level.detach()) == ("w",)
    assert of(levels, call, gradient=lambda inputs, y, v: {"w": v, "level": v}) == ("w", "level")
    assert of(lambda x, y: x if y is None else y, (x, None), (x, x)) == ("x", "y")


def test_wrt_is_told_without_drawing_from_the_generators_of_the_caller() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    assert of(lambda x: x * torch.rand(2), x) == ("x",)
    assert torch.equal(torch.get_rng_state(), before)


def test_another_implementation_and_an_operator_have_names_too() -> None:
    assert FunctionSpec(Cube.apply, cube, cases=[x]).for_(Wrong.apply).name == "Wrong"
    assert FunctionSpec(cube, lambda x: x**3, cases=[x]).name == "cube"
    operator = OperatorSpec("aten::sin", primal=lambda self: self.sin(), cases=[x])
    assert (operator.name, operator.wrt) == ("sin", ("self",))


FORM = "write FunctionSpec(Cube.apply, cube, cases=[(x, 0.5)])"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: Case("half", (x, 0.5)), "write Case(..., name='half'), or Case(name='half', args=(...))"),
        (lambda: Case(name="half", arg=(x,)), "a case is given an argument 'arg': write Case(x, 0.5), or Case(name="),
        (lambda: Case(x, args=(x,)), "a case is given positional arguments and args: write Case(x, 0.5), or"),
        (lambda: FunctionSpec("cube", Cube.apply, cases=[x]), f"function is 'cube', which cannot be called: {FORM}"),
        (lambda: FunctionSpec("cube", Cube.apply, cube, cases=[x]), f"too many positional arguments; {FORM}"),
        (lambda: FunctionSpec(Cube.apply, cases=[x]), f"missing a required argument: 'primal'; {FORM}"),
        (lambda: FunctionSpec(Cube.apply, cube, case=[x]), f"there is no 'case', did you mean 'cases'?; {FORM}"),
        (
            lambda: FunctionSpec(Cube.apply, cube, cases=(x, 0.5)),
            "cases is of type tuple: write a list of calls, cases=[",
        ),
        (lambda: FunctionSpec(Cube.apply, cube, cases=[0.5]), "0.5 is not a call: write a tuple of its arguments"),
        (lambda: FunctionSpec(Cube.apply, cube, cases=[]), "cases has no call"),
        (
            lambda: FunctionSpec(Cube.apply, cube, cases=[torch.ones(2).int()]),
            "no argument gets a gradient from primal in any case: give surrogate= where its gradient",
        ),
        (lambda: FunctionSpec(Cube.apply, cube, cases=[(x, 1, 2)]), "does not fit primal(x: "),
        (
            lambda: FunctionSpec(Cube.apply, lambda x: x / "a", cases=[x]),
            "primal raises TypeError: unsupported operand",
        ),
        (lambda: FunctionSpec(lambda x: x, lambda x: x, cases=[x]), "needs a name: give name='...'"),
        (lambda: OperatorSpec("aten::sin", cases=[x]), 'write OperatorSpec("mylib::scale", primal=scale, cases='),
    ],
)
def test_a_wrong_form_says_in_one_line_which_is_meant(wrong: Callable[[], Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(said)) as caught:
        wrong()
    assert "\n" not in str(caught.value)


def test_a_case_that_does_not_fit_says_so_and_that_its_first_argument_may_be_its_name() -> None:
    spec = FunctionSpec(Cube.apply, cube, wrt=("x",), cases=[Case("half", x, 0.5)])
    verdicts = verify([spec], VALUE_AND_GRADIENT).verdicts

    assert {v.status for v in verdicts} == {Status.ERROR, Status.NOT_MEASURED}
    message = verdicts[0].finding.message
    assert "too many positional arguments; if 'half' is its name, write Case(..., name='half')" in message


def test_a_module_that_is_made_already_is_refused() -> None:
    with pytest.raises(ValueError, match="module is an instance: give Linear, and its arguments in a ModuleCase"):
        ModuleSpec(name="made", module=torch.nn.Linear(2, 2), cases=lambda make: iter([]), wrt=("input",))


def test_an_accuracy_that_is_text_is_refused() -> None:
    with pytest.raises(ValueError, match="rtol is '1e-3', expected a number from 0 to 1"):
        Accuracy(rtol="1e-3")  # type: ignore[arg-type]


def test_a_module_may_hold_its_specs_in_a_tuple_alone(tmp_path: Path) -> None:
    file = tmp_path / "held.py"
    file.write_text(
        "import torch\nfrom gradspec import FunctionSpec\n"
        "def sin(x):\n    return x.sin()\n"
        "SPECS = (FunctionSpec(sin, sin, cases=lambda make: [(make(2),)]),)\n",
        encoding="utf-8",
    )
    ((path, spec),) = resolve(str(file))

    assert (path.rpartition(":")[0], spec.name) == (str(file), "sin")


class Eager(torch.autograd.Function):
    """A product that computes a gradient for its second factor whether it is asked or not."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        x, w = ctx.saved_tensors
        return grad * w, grad * x


def _product(x: Tensor, w: Tensor) -> Tensor:
    return x * w


@pytest.mark.parametrize("number", [1, 2])
def test_beneath_several_specs_each_line_names_its_own(number: int) -> None:
    specs = [
        FunctionSpec(Eager.apply, _product, cases=lambda make: [(make(3), make(3))], name=f"product_{k}")
        for k in range(number)
    ]
    said = str(verify(specs, [law for law in LAWS if law.name == "needs_input_grad"], isolate=False))

    assert ("  product_0: `needs_input_grad`, waste: " in said) is (number > 1)
    assert ("  `needs_input_grad`, waste: " in said) is (number == 1)
