"""A single check: `gradspec.check` has the habits of gradcheck, and a report raises what it says."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.autograd import Function

import gradspec
from forked import python
from gradspec import CheckError
from gradspec.law import Rank, Status
from gradspec.laws import LAWS


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, factor: float) -> torch.Tensor:
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:  # type: ignore[override]
        return grad * ctx.factor, None


class FourTimes(Scale):
    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:  # type: ignore[override]
        return grad * ctx.factor * 4, None


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.round()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return grad


def _scaled(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * factor


def _fails(x: torch.Tensor) -> torch.Tensor:
    raise RuntimeError("no kernel")


@pytest.fixture
def x() -> torch.Tensor:
    return torch.tensor([0.2, 1.7, -2.4], dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize(
    "references", [{}, {"primal": _scaled}, {"surrogate": _scaled}, {"primal": lambda a, b: a * b}]
)
def test_right_function_passes(x: torch.Tensor, references: dict[str, Any]) -> None:
    assert gradspec.check(Scale, (x, 2.0), **references) is True


@pytest.mark.parametrize("references", [{}, {"primal": _scaled}])
def test_a_declared_gradient_is_what_backward_is_held_to(x: torch.Tensor, references: dict[str, Any]) -> None:
    four_times = {"gradient": lambda inputs, output, cotangent: 4 * inputs.factor * cotangent, **references}

    assert gradspec.check(FourTimes, (x, 2.0), **four_times) is True
    with pytest.raises(CheckError, match=r"off by the factor 0\.25"):
        gradspec.check(Scale, (x, 2.0), **four_times)
    with pytest.raises(ValueError, match="give surrogate or gradient, not both"):
        gradspec.check(Scale, (x, 2.0), surrogate=_scaled, **four_times)


def test_of_a_module_a_declared_gradient_takes_the_inputs() -> None:
    class Doubled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor([2.0, -1.0, 0.5], dtype=torch.float64))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.weight * x

    layer = Doubled()
    x = torch.tensor([0.2, 1.7, -2.4], dtype=torch.float64, requires_grad=True)
    given: dict[str, Any] = {"gradient": lambda inputs, output, cotangent: layer.weight.detach() * cotangent}
    assert gradspec.check(layer, x, primal=lambda x: layer.weight * x, **given) is True
    with pytest.raises(ValueError, match="give both"):
        gradspec.check(layer, x, **given)


class Gain(torch.nn.Module):
    def __init__(self, sign: int) -> None:
        super().__init__()
        self.sign = sign
        self.weight = torch.nn.Parameter(torch.tensor([2.0, -1.0, 0.5], dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * Signed.apply(self.weight, self.sign)


class Signed(Function):
    @staticmethod
    def forward(ctx: Any, weight: torch.Tensor, sign: int) -> torch.Tensor:
        ctx.sign = sign
        return weight * 1

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return ctx.sign * grad, None


@pytest.mark.parametrize("requires_grad", [False, True])
def test_the_gradients_of_the_parameters_of_a_module_are_checked(requires_grad: bool) -> None:
    x = torch.tensor([[0.2, 1.7, -2.4], [0.9, -0.3, 1.1]], dtype=torch.float64, requires_grad=requires_grad)

    assert gradspec.check(Gain(1), x) is True
    with pytest.raises(CheckError, match="gradient of `weight`"):
        gradspec.check(Gain(-1), x)


def test_wrong_factor_is_the_text_of_the_exception(x: torch.Tensor) -> None:
    with pytest.raises(CheckError) as caught:
        gradspec.check(FourTimes, (x, 2.0), primal=_scaled)
    text = str(caught.value)
    assert "gradient of `x`" in text
    got, expected = (float(re.search(rf"{word} +(\S+)", text)[1]) for word in ("got", "expected"))  # type: ignore[index]
    assert got == pytest.approx(4 * expected, rel=1e-3)
    assert "off by the factor 4" in text
    assert "Again:" not in text  # no command makes this call


def test_the_first_line_says_what_is_wrong_with_which_function() -> None:
    @torch.library.custom_op("check_function::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    twice.register_autograd(lambda ctx, y_bar: 3 * y_bar)
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    for references, words in (({}, "`surrogate`, wrong silently: "), ({"primal": lambda x: 2 * x}, "`vjp`, wrong sil")):
        with pytest.raises(CheckError, match=f"^check_function::twice: {words}"):
            gradspec.check(twice, x, **references)


def test_without_a_reference_backward_is_held_to_finite_differences(x: torch.Tensor) -> None:
    with pytest.raises(CheckError, match="does not apply the derivative of what forward computes") as caught:
        gradspec.check(FourTimes, (x, 2.0))
    assert "gradient of `x` (random cotangent) differs in 3 of 3 elements" in str(caught.value)
    assert "Likely: off by the factor 4; right with `grad * ctx.factor` in place of" in str(caught.value)


def test_wrong_values_are_found_with_a_primal_alone(x: torch.Tensor) -> None:
    def other(x: torch.Tensor, factor: float) -> torch.Tensor:
        return x * factor + 1

    with pytest.raises(CheckError, match="breaks `primal`"):
        gradspec.check(Scale, (x, 2.0), primal=other)
    assert gradspec.check(Scale, (x, 2.0), surrogate=other)


def test_straight_through_passes_with_its_surrogate_only(x: torch.Tensor) -> None:
    assert gradspec.check(Round, x, primal=torch.round, surrogate=lambda x: x)
    assert gradspec.check(Round, x, raise_exception=False) is False


@pytest.mark.parametrize(
    "function", [torch.nn.Linear(3, 2).double(), torch.ops.aten.tanh.default, torch.sin, Scale.apply]
)
def test_module_operator_and_callable(x: torch.Tensor, function: Any) -> None:
    assert gradspec.check(function, (x, 2.0) if function == Scale.apply else x)


def test_input_that_shows_nothing_is_said() -> None:
    alike = torch.ones(3, dtype=torch.float64, requires_grad=True)
    with pytest.raises(CheckError, match="two elements of the value could be swapped"):
        gradspec.check(Scale, (alike, 2.0), primal=_scaled)


def test_a_report_raises_what_it_says_or_nothing(x: torch.Tensor) -> None:
    case = gradspec.Case(name="one", args=(x.detach(), 2.0))
    right = gradspec.FunctionSpec(
        name="scale",
        function=Scale.apply,
        primal=_scaled,
        surrogate=_scaled,
        wrt=("x",),
        cases=lambda make: iter([case]),
        supports=gradspec.Supports.eager(),
    )
    laws = [law for law in LAWS if law.name == "vjp"]
    gradspec.verify([right], laws, isolate=False).check()
    report = gradspec.verify([right.for_(FourTimes.apply, name="four_times")], laws, isolate=False)
    with pytest.raises(CheckError) as caught:
        report.check()
    assert "four_times breaks `vjp` on case `one`" in str(caught.value)
    first, _, below = str(caught.value).partition("\n")
    assert first.startswith("four_times: `vjp`, wrong silently: ")
    table, found, rest = str(report).partition(below)
    assert table.splitlines()[1].split() == ["law", "four_times"]
    assert (found, rest) == (below, "")


def test_inputs_and_generator_are_left_alone(x: torch.Tensor) -> None:
    before = torch.get_rng_state()
    gradspec.check(Scale, (x, 2.0), primal=_scaled)
    assert x.grad is None
    assert torch.equal(torch.get_rng_state(), before)


def test_input_may_be_computed_and_is_apart_from_its_graph(x: torch.Tensor) -> None:
    assert gradspec.check(Scale, (x * 3, 2.0), primal=_scaled)
    assert x.grad is None


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: gradspec.check(Round, x.detach()), ValueError, "no input requires a gradient"),
        (lambda x: gradspec.check(3, x), TypeError, "function cannot be called: it is 3"),  # type: ignore[arg-type]
        (lambda x: gradspec.check(Round, x, primal=3), TypeError, "primal cannot be called: it is 3"),
        (lambda x: gradspec.check(Round, x, primal=_scaled), ValueError, "primal does not take the inputs"),
        (lambda x: gradspec.check(Round, x, surrogate=_scaled), ValueError, "surrogate does not take the inputs"),
        (lambda x: gradspec.check(Round, (x, x)), ValueError, "does not fit Round"),
        (lambda x: gradspec.check(Round, x, laws=["vpj"]), ValueError, "has no law 'vpj': did you mean 'vjp'?"),
        (lambda x: gradspec.check(Round, x, laws="vjp"), TypeError, "laws is the text 'vjp': write a list"),
        (lambda x: gradspec.check(Round, x, laws=[3]), TypeError, "laws holds 3: give a Law, or the name of one"),
        (lambda x: gradspec.check(_fails, x), ValueError, "_fails raises on these inputs: RuntimeError: no kernel"),
        (lambda x: gradspec.check(Round, [x]), ValueError, "a list or a dict is one argument: give several in a tuple"),  # type: ignore[arg-type]
        (
            lambda x: gradspec.check(Round.__new__(Round), x),
            TypeError,
            "an instance of Round, which torch calls as a class",
        ),
        (lambda x: gradspec.check(Round, x, seed="a"), TypeError, "seed is 'a': give a whole number"),  # type: ignore[arg-type]
        (lambda x: gradspec.check(Round.forward, x), TypeError, "is a part of a Function: give the Function itself"),
    ],
)
def test_bad_input_is_one_line(x: torch.Tensor, call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=re.escape(words)) as caught:
        call(x)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_works_where_there_is_no_file() -> None:
    code = (
        "import torch, gradspec; x = torch.randn(2, dtype=torch.float64, requires_grad=True); "
        "print(gradspec.check(lambda x: x * x, x, primal=lambda x: x ** 2))"
    )
    ran = python("-c", code)
    assert (ran.stdout, ran.returncode) == ("True\n", 0), ran.stderr


class Counts(Function):
    """Multiplies by the number of its calls; `right` forgets the number again."""

    calls = 0

    @classmethod
    def forward(cls, ctx, x):
        Counts.calls += 1
        return Counts.calls * x

    @staticmethod
    def backward(ctx, y_bar):
        return 2 * y_bar


@pytest.mark.parametrize(
    ("references", "words"),
    [
        ({}, "^Counts: two calls with the same inputs differ .* give primal="),
        ({"primal": lambda x: 2 * x}, "keeps state"),
    ],
)
def test_nothing_is_right_of_a_function_whose_calls_differ(
    x: torch.Tensor, references: dict[str, Any], words: str
) -> None:
    with pytest.raises(gradspec.CheckError, match=words):
        gradspec.check(Counts, x, **references)


class Counted(Function):
    """Each second gradient is twice as large."""

    calls = 0

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @classmethod
    def backward(cls, ctx, y_bar):
        Counted.calls += 1
        return 2 * y_bar * (1 + Counted.calls % 2)


def test_a_gradient_that_moves_from_call_to_call_is_told_as_that(x: torch.Tensor) -> None:
    with pytest.raises(gradspec.CheckError, match="the gradients of two calls with the same arguments differ"):
        gradspec.check(Counted, x)


class Unwritten(Function):
    """Doubles its argument, and the gradient of whole tiles only."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, y_bar):
        x_bar = torch.empty_like(y_bar)
        x_bar[:2] = 2 * y_bar[:2]
        return x_bar


@pytest.mark.parametrize("references", [{}, {"primal": lambda x: 2 * x}])
def test_memory_that_nobody_wrote_is_found_whatever_it_holds(references: dict[str, Any]) -> None:
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)

    for seed in range(2):  # new memory may hold the right numbers of the reference
        with pytest.raises(gradspec.CheckError, match="`x` is memory that nobody wrote in 1 of 3 elements"):
            gradspec.check(Unwritten, x, seed=seed, **references)


class Ends(Function):
    """The cube root by bisection, to a tolerance that float32 does not reach."""

    @staticmethod
    def forward(ctx, x):
        low, high = torch.zeros_like(x), 1 + x
        while (high - low).max() > 1e-12:
            middle = (low + high) / 2
            low, high = torch.where(middle**3 < x, middle, low), torch.where(middle**3 < x, high, middle)
        ctx.save_for_backward(low)
        return low

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar / (3 * ctx.saved_tensors[0] ** 2)


def test_an_iteration_that_has_no_end_in_lower_precision_is_right_in_that_of_the_call() -> None:
    x = torch.tensor([0.6, 1.2], dtype=torch.float64, requires_grad=True)

    assert gradspec.check(Ends, x)


@pytest.mark.slow
def test_an_iteration_is_asked_in_lower_precision_whether_rounding_explains_a_difference_and_is_ended_there(
    tmp_path: Path,
) -> None:
    class Nears(Ends):
        """The cube root to eight digits: training in float32 would not see its difference from the exact one."""

        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            low, high = torch.zeros_like(x), 1 + x
            for k in count():
                if (high - low).max() <= 1e-8:
                    break
                if k == 5_000:
                    (tmp_path / "endless").touch()
                middle = (low + high) / 2
                low, high = torch.where(middle**3 < x, middle, low), torch.where(middle**3 < x, high, middle)
            ctx.save_for_backward(low)
            return low

    x = torch.tensor([0.6, 1.2], dtype=torch.float64, requires_grad=True)
    assert gradspec.check(Nears, x, primal=lambda x: x ** (1 / 3))
    assert not (tmp_path / "endless").exists()


class Doubles(Function):
    """Multiplies its argument by two, in place."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, y_bar):
        return 2 * y_bar


class DoublesWrongly(Doubles):
    """The same, with the gradient of another factor."""

    @staticmethod
    def backward(ctx, y_bar):
        return 3 * y_bar


@pytest.mark.parametrize("references", [{}, {"primal": lambda x: 2 * x}])
def test_a_function_that_writes_to_its_argument_gets_a_copy(references: dict[str, Any]) -> None:
    x = torch.tensor([0.6, 1.2], dtype=torch.float64, requires_grad=True)

    assert gradspec.check(Doubles, x, **references)
    assert not gradspec.check(DoublesWrongly, x, raise_exception=False, **references)
    assert x.tolist() == [0.6, 1.2]


class Square(Function):
    """The square."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, y_bar):
        return 2 * y_bar * ctx.saved_tensors[0]


def test_where_the_argument_is_infinite_zero_times_it_is_no_gradient_out_of_nothing() -> None:
    x = torch.tensor([1.0, torch.inf], dtype=torch.float64, requires_grad=True)

    assert gradspec.check(Square, x, primal=torch.square, laws=["undefined_cotangent", "primal", "vjp"])


def test_a_call_without_an_element_shows_nothing() -> None:
    with pytest.raises(ValueError, match="has an element: such a call shows nothing"):
        gradspec.check(Square, torch.randn(0, 3, requires_grad=True))


class Rounds(Function):
    """Rounds its first argument, whose gradient is zero, and adds the second."""

    @staticmethod
    def forward(ctx, a, b):
        return a.round() + b

    @staticmethod
    def backward(ctx, y_bar):
        return None, y_bar


class Linear(Function):
    """Multiplies by a matrix and adds a bias, whose gradient it returns where there is none, too."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        return torch.nn.functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, y_bar: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x, weight = ctx.saved_tensors
        return y_bar @ weight, y_bar.T @ x, y_bar.sum(0)


class OfWhatIsTrained(Linear):
    """Gives the bias its gradient only where the matrix has one."""

    @staticmethod
    def backward(ctx: Any, y_bar: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        is_asked = ctx.needs_input_grad[1]
        return y_bar @ weight, y_bar.T @ x if is_asked else None, y_bar.sum(0) if is_asked else None


def test_a_gradient_that_is_lost_where_another_argument_is_frozen_is_one_finding() -> None:
    x, weight, bias = (torch.randn(*shape, dtype=torch.float64) for shape in ((4, 3), (2, 3), (2,)))
    with pytest.raises(gradspec.CheckError) as caught:
        gradspec.check(OfWhatIsTrained, (x.requires_grad_(), weight, bias.requires_grad_()))

    said = str(caught.value)
    assert said.startswith("OfWhatIsTrained: `surrogate`, wrong silently: backward returns no gradient for `bias`")
    assert "vacuous" not in said
    assert "--" not in said  # there is no command to give an option to


@pytest.mark.parametrize(
    ("primal", "has_graph"), [(lambda x: _scaled(x, 2.0), True), (lambda x: _scaled(x.detach(), 2.0), False)]
)
def test_a_reference_without_a_graph_is_named(x: torch.Tensor, primal: Any, has_graph: bool) -> None:
    found = gradspec.check(lambda x: x * 2, x, primal=primal, raise_exception=False)

    assert found is has_graph
    if not has_graph:
        with pytest.raises(gradspec.CheckError, match="what it is compared with has no graph"):
            gradspec.check(lambda x: x * 2, x, primal=primal)


class Scaled(Function):
    """Multiplies by a scale, if there is one; backward forgets that there may be none."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, scale: torch.Tensor | None) -> torch.Tensor:
        ctx.scale = scale
        return x if scale is None else x * scale

    @staticmethod
    def backward(ctx: Any, y_bar: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return y_bar * ctx.scale.sum(), None


@pytest.mark.parametrize(
    ("function", "rest", "words"),
    [
        (Linear, (None,), "return None for what is no tensor in the call"),
        (Linear, (), "return as many as the call gives arguments to forward"),
        (Scaled, (None,), r"'NoneType' object has no attribute 'sum'(?s:.)*, in backward"),
    ],
)
def test_a_backward_that_raises_by_a_mistake_is_wrong(function: Any, rest: tuple[None, ...], words: str) -> None:
    x, weight = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((4, 3), (2, 3)))
    inputs = (x, weight, *rest) if function is Linear else (x, *rest)

    with pytest.raises(gradspec.CheckError, match=words):
        gradspec.check(function, inputs)
    assert not gradspec.check(function, inputs, raise_exception=False)


def test_of_an_element_of_a_list_a_reference_says_whether_its_gradient_is_lost() -> None:
    xs = [torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(2)]

    with pytest.raises(CheckError) as caught:
        gradspec.check(
            lambda xs: Rounds.apply(*xs), (xs,), primal=lambda xs: xs[0].round() + xs[1], laws=["primal", "vjp"]
        )
    assert "shows nothing" in str(caught.value)
    assert "returns no gradient" not in str(caught.value)


class OfItsClass(Function):
    """Multiplies by a number of the class, which both passes are handed."""

    factor = 2.0

    @classmethod
    def forward(cls, ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return cls.factor * x

    @classmethod
    def backward(cls, ctx: Any, y_bar: torch.Tensor) -> torch.Tensor:
        return cls.factor * y_bar


class OfAnotherClass(OfItsClass):
    factor = 3.0


def test_a_forward_that_is_a_classmethod_takes_no_keywords_and_is_not_accused(x: torch.Tensor) -> None:
    assert gradspec.check(OfItsClass, x, primal=lambda x: 2 * x)
    assert gradspec.check(OfAnotherClass, x, primal=lambda x: 3 * x)
    assert not gradspec.check(OfAnotherClass, x, primal=lambda x: 2 * x, raise_exception=False)


class GatedByAScalar(torch.autograd.Function):
    """x + a y, with a number that is learned."""

    @staticmethod
    def forward(ctx, x, y, a):
        ctx.save_for_backward(y, a)
        return x + a * y

    @staticmethod
    def backward(ctx, bar):
        y, a = ctx.saved_tensors
        return bar, a * bar, (bar * y).sum()


def test_a_number_that_is_learned_does_not_keep_a_right_function_from_being_right():
    x, y, a = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((5, 8), (5, 8), ()))
    assert gradspec.check(GatedByAScalar, (x, y, a))
    assert gradspec.check(GatedByAScalar, (x, y, a), primal=lambda x, y, a: x + a * y)


class BiasBeforeNorm(Function):
    """A bias whose mean is taken off again: its gradient is 0 but for rounding."""

    @staticmethod
    def forward(ctx, x, b):
        y = x + b
        rstd = (y.var(0, unbiased=False) + 1e-5).rsqrt()
        yh = (y - y.mean(0)) * rstd
        ctx.save_for_backward(yh, rstd)
        return yh

    @staticmethod
    def backward(ctx, g):
        yh, rstd = ctx.saved_tensors
        x_bar = rstd * (g - g.mean(0) - yh * (g * yh).mean(0))
        return x_bar, x_bar.sum(0)


def bias_before_norm(x, b):
    return torch.nn.functional.batch_norm(x + b, None, None, training=True, eps=1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_gradient_that_is_zero_but_for_rounding_is_right_beside_a_reference(dtype):
    x, b = (torch.randn(shape, dtype=dtype, requires_grad=True) for shape in ((6, 4), (4,)))
    assert gradspec.check(BiasBeforeNorm, (x, b), primal=bias_before_norm)
    found = gradspec.audit(BiasBeforeNorm, [(x, b)], laws=["vjp"], reference=bias_before_norm)
    assert not found.report.failures


def test_a_gradient_of_zeros_where_the_reference_has_another_is_wrong():
    class Forgets(BiasBeforeNorm):
        @staticmethod
        def backward(ctx, g):
            return g, torch.zeros_like(g[0])

    x, b = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((6, 4), (4,)))
    with pytest.raises(gradspec.CheckError, match=r"gradient of `b` .* differs in 4 of 4"):
        gradspec.check(Forgets, (x, b), primal=bias_before_norm, surrogate=lambda x, b: x + b)


class MeanOfRows(Function):
    """Of what is centred it is 0 but for rounding, and the order of a sum is another one in other strides."""

    @staticmethod
    def forward(ctx, x):
        ctx.rows = len(x)
        return x.mean(0)

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar.expand(ctx.rows, *y_bar.shape) / ctx.rows


class ReadsTheMemory(MeanOfRows):
    @staticmethod
    def forward(ctx, x):
        ctx.rows = len(x)
        return torch.as_strided(x, x.shape, (x.shape[1], 1)).mean(0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_value_that_is_zero_but_for_rounding_may_differ_in_other_strides(dtype):
    for _ in range(4):
        x = torch.randn(6, 4, dtype=dtype)
        x = (x - x.mean(0)).requires_grad_()
        assert gradspec.check(MeanOfRows, x)
        assert gradspec.check(MeanOfRows, x, primal=lambda x: x.mean(0))
        with pytest.raises(gradspec.CheckError, match="memory is read as if it were contiguous"):
            gradspec.check(ReadsTheMemory, x)


class Inner(Function):
    """Keeps a graph of its own, which notices a write to what it needs."""

    @staticmethod
    def forward(ctx, x):
        with torch.enable_grad():
            z = x.detach().requires_grad_()
            y = torch.tanh(z) * z
        ctx.graph = z, y
        return y.detach()

    @staticmethod
    def backward(ctx, y_bar):
        z, y = ctx.graph
        return torch.autograd.grad(y, z, y_bar, retain_graph=True)[0]


class Kept(Function):
    """Keeps its argument, and nobody notices a write to it."""

    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * x

    @staticmethod
    def backward(ctx, y_bar):
        return 2 * ctx.x * y_bar


def test_that_a_write_goes_unnoticed_is_said_where_one_does(x: torch.Tensor) -> None:
    assert gradspec.check(Inner, x)
    with pytest.raises(gradspec.CheckError, match=r"(?s)sits on ctx\.x, and is an argument.*goes unnoticed"):
        gradspec.check(Kept, x)
    (verdict,) = gradspec.audit(Inner, [(x,)], laws=["ctx_clean"]).report.verdicts
    assert (verdict.status, verdict.finding.rank) == (Status.BROKEN, Rank.WASTE)
    assert "unnoticed" not in verdict.finding.likely


def test_what_holds_no_numbers_or_is_no_function_is_refused_in_words(x: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="has a tensor on the device meta, which holds no numbers"):
        gradspec.check(Kept, torch.empty(3, device="meta", requires_grad=True))
    with pytest.raises(TypeError, match=r"Other is a class, and neither a torch\.autograd\.Function nor"):
        gradspec.check(type("Other", (), {}), x)
    with pytest.raises(ValueError, match=r"^the gradient raises TypeError: "):
        gradspec.audit(Kept, [(x,)], gradient=lambda y: y)
