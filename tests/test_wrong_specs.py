"""A wrong construction is one line that says how it is written; what shows nothing is not green."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

import gradspec
from gradspec import Accuracy, Effects, FunctionSpec, ModuleCase, ModuleSpec, Supports, audit, verify
from gradspec.spec import ModuleSupports, Waiver

X = torch.tensor([0.5, -2.0, 1.5], dtype=torch.float64)


class Scaled(Function):
    """Wrong: the gradient is another one."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float = 2.0) -> Tensor:
        ctx.save_for_backward(x)
        return factor * x**2

    @staticmethod
    def backward(ctx: Any, y_bar: Tensor) -> tuple[Tensor, None]:
        return 5 * y_bar, None


def plain(x: Tensor, factor: float) -> Tensor:
    return factor * x**2


def of(**fields: Any) -> FunctionSpec:
    return FunctionSpec(Scaled.apply, plain, **{"cases": [(X, 0.5)], **fields})


def of_module(**fields: Any) -> ModuleSpec:
    def cases(make: Any) -> Iterator[ModuleCase]:
        yield ModuleCase(name="rows", args=(3, 2), inputs=(make(4, 3),), output=(2,))

    return ModuleSpec(**{"name": "linear", "module": torch.nn.Linear, "cases": cases, "wrt": ("input",), **fields})


@pytest.mark.parametrize(
    ("made", "error", "said"),
    [
        (lambda: of(accuracy=1e-8), ValueError, "spec 'Scaled': accuracy is 1e-08: write Accuracy(rtol=1e-8)"),
        (lambda: of(effects="x"), ValueError, "effects is 'x': write Effects(view_of='x')"),
        (lambda: of(name=3), ValueError, "name is 3: write a text"),
        (lambda: of(version="2"), ValueError, "version is '2': write a whole number"),
        (lambda: of(formula="x**2"), ValueError, "formula is 'x**2': write Formula(primal='x', surrogate='f * x')"),
        (lambda: of(saved=3), ValueError, "saved is 3: write Saved("),
        (lambda: of(waivers=["vjp"]), ValueError, "waivers has 'vjp': write a tuple, as (Waiver(law='vjp'"),
        (lambda: of(placements="x"), ValueError, "placements has 'x': write a tuple"),
        (lambda: of(arguments=("x",)), ValueError, "arguments has 'x': write a tuple, as (Argument("),
        (lambda: of(wrt=(0,)), ValueError, "wrt has 0, and names are texts: write ('x',)"),
        (lambda: of(wrt=("x", "x")), ValueError, "wrt has 'x' twice"),
        (lambda: of(cases=None), ValueError, "cases is None: write a list of calls"),
        (lambda: of(surrogate=lambda y: y), ValueError, "does not fit surrogate(y): too many positional arguments"),
        (lambda: of(surrogate=lambda x, factor: x / 0 / [][0]), ValueError, "surrogate raises IndexError: list index"),
        (lambda: of(gradient=lambda x: x), ValueError, "the gradient raised TypeError: "),
        (lambda: of(gradient=lambda inputs, y, v: None), ValueError, "gradient returns none for any argument in any"),
        (lambda: Supports(vmap="no"), ValueError, "Supports: vmap is 'no': True, it works; False, it is refused"),
        (
            lambda: Supports(vmapp=True),
            TypeError,
            "there is no 'vmapp', did you mean 'vmap'?; write Supports(vmap=True)",
        ),
        (lambda: ModuleSupports(export=1), ValueError, "ModuleSupports: export is 1: True, it works"),
        (lambda: Accuracy(atol=1e-8), TypeError, "there is no 'atol', did you mean 'rtol'?; write Accuracy(rtol=1e-8)"),
        (lambda: Accuracy(rtol=2.0), ValueError, "rtol is 2.0, expected a number from 0 to 1"),
        (
            lambda: Accuracy(accumulate="float32"),
            ValueError,
            "accumulate is 'float32', expected a floating-point dtype, torch.float32",
        ),
        (lambda: Accuracy(standard_error=-1.0), ValueError, "standard_error is -1.0, expected a number from 0 on"),
        (lambda: Accuracy(store=torch.int64), ValueError, "store is torch.int64, expected a floating-point dtype"),
        (lambda: Effects(view_of=1), ValueError, "Effects: view_of is 1: write a text"),
        (
            lambda: of_module(wrt=("inputt",)),
            ValueError,
            "wrt names 'inputt', which is not an argument of forward(input)",
        ),
        (lambda: of_module(supports=Supports()), ValueError, "write ModuleSupports(compile=True)"),
        (lambda: ModuleSpec("linear"), TypeError, "write ModuleSpec(name='linear', module=torch.nn.Linear"),
        (lambda: ModuleCase(name="a", args=(), inputs=X), TypeError, "inputs is of type Tensor, expected a tuple"),
        (lambda: ModuleCase(name="a", args=(), inputs=(X,), output=2), TypeError, "output is of type int, expected a"),
        (lambda: of(implementation=Scaled.apply), ValueError, "implementation is <bound method"),
        (lambda: of(effects=Effects(view_of="q")), ValueError, "'q' is not a parameter of primal(x, factor)"),
        (lambda: gradspec.Case(X, kwargs=[1]), TypeError, "kwargs of a case is [1], expected a dict"),
        (lambda: Waiver("vjp", "a"), TypeError, "write Waiver(law='vjp', case='a matrix', reason='...')"),
        (lambda: audit(Scaled, (X, 0.5)), TypeError, "0.5 among the cases is no call: write [(x, 0.5)]"),  # type: ignore[arg-type]
        (lambda: verify([of_module(cases=lambda make: [])]), ValueError, "spec 'linear' has no case"),
        (lambda: gradspec.check(Scaled, leaf(), primal=plain, laws=[]), ValueError, "laws is empty, and nothing would"),
        (lambda: gradspec.check(of(), leaf()), TypeError, "it is the spec of 'Scaled', which verify([spec]) takes"),
        (lambda: gradspec.check(Scaled, leaf(), accuracy=1e-8), TypeError, "accuracy is 1e-08: write Accuracy(rtol="),
        (lambda: audit(Scaled, [(X,)], accuracy=1e-8), TypeError, "accuracy is 1e-08: write Accuracy(rtol=1e-8)"),
        (lambda: audit(of(), [(X,)]), TypeError, "it is the spec of 'Scaled', which verify([spec]) takes"),
    ],
)
def test_what_is_written_wrongly_is_said_with_how_it_is_written(
    made: Callable[[], object], error: type[Exception], said: str
) -> None:
    with pytest.raises(error) as raised:
        made()
    assert said in str(raised.value)
    assert len(str(raised.value)) < 400


def test_a_standard_error_may_be_larger_than_what_is_estimated() -> None:
    assert Accuracy(standard_error=3.0).standard_error == 3.0


def leaf() -> tuple[Tensor, float]:
    return X.clone().requires_grad_(), 0.5


@pytest.mark.parametrize(
    ("wrt", "said"),
    [
        (("factor",), "wrt names `factor`, no tensor of floating point, and `x` gets a gradient: name that in wrt"),
        ((), "wrt is (), and `x` gets a gradient: name that in wrt"),
    ],
)
def test_a_gradient_that_no_law_would_look_at_is_not_green(wrt: tuple[str, ...], said: str) -> None:
    failures = verify([of(wrt=wrt)], [law for law in gradspec.laws.LAWS if law.name == "vjp"]).failures

    assert [(str(one.status), one.finding.message) for one in failures] == [("error", said)]


@pytest.mark.parametrize(
    ("surrogate", "said"),
    [
        (lambda x, factor: plain(x, factor).sum(), "has the shape (3,), that of the surrogate ()"),
        (
            lambda x, factor: plain(x, factor).float(),
            "has the dtype torch.float64, that of the surrogate torch.float32",
        ),
    ],
)
def test_a_surrogate_of_another_shape_or_dtype_is_no_fault_of_the_function(surrogate: Any, said: str) -> None:
    with pytest.raises(gradspec.CheckError) as raised:
        gradspec.check(Scaled, leaf(), primal=plain, surrogate=surrogate)
    assert f"`vjp`, could not be judged: output 0 of the primal {said}" in str(raised.value)


class Norm(Function):
    """Right."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, eps: float = 1e-6, weight: Tensor | None = None) -> Tensor:
        r = ((x * x).mean(-1, keepdim=True) + eps).rsqrt()
        ctx.save_for_backward(x, r, weight)
        return x * r if weight is None else x * r * weight

    @staticmethod
    def backward(ctx: Any, y_bar: Tensor) -> tuple[Tensor | None, ...]:
        x, r, weight = ctx.saved_tensors
        of_n = y_bar if weight is None else y_bar * weight
        x_bar = of_n * r - x * r**3 * (of_n * x).mean(-1, keepdim=True)
        return x_bar, None, None if weight is None else (y_bar * x * r).sum(0)


def normed(x: Tensor) -> Tensor:
    return x * ((x * x).mean(-1, keepdim=True) + 1e-6).rsqrt()


def weighted(x: Tensor, weight: Tensor) -> Tensor:
    return normed(x) * weight


def test_a_reference_need_not_know_the_defaults_that_no_call_gives() -> None:
    x = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)

    assert gradspec.check(Norm, x, primal=normed)
    found = audit(Norm, ["(randn(4, 3),)"], reference=normed, laws=["primal", "vjp"], reference_paths=["ops:normed"])
    assert not found.report.failures
    assert "primal=lambda x, eps=1e-06, weight=None: normed(x)," in found.proposal


def test_a_reference_has_to_know_what_a_call_gives() -> None:
    with pytest.raises(ValueError, match="reference does not take the inputs of the function: too many positional"):
        audit(Norm, ["(randn(4, 3), 1e-3)"], reference=normed, laws=["primal"])


def test_an_argument_behind_such_a_default_is_given_by_its_name() -> None:
    def norm(x: Tensor, eps: float = 1e-6, weight: Tensor | None = None) -> Any:
        return Norm.apply(x, eps, weight)  # type: ignore[no-untyped-call]

    found = audit(norm, ["(randn(4, 3), weight=randn(3))"], reference=weighted, laws=["primal", "vjp"])

    assert not found.report.failures
