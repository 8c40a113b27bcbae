"""The law `none_for_data` of a backward that asks models: no call is made for a Variable that wants no gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gradspec import TextCase, TextSpec, verify
from gradspec.text import Function, Variable, defer
from gradspec.text.lm import Client, RuleModel, complete

MODEL = RuleModel({r"of (\w+)": r"shorten \1", "one remark": "shorten both"})
CLIENT = Client(MODEL)


class Asking(Function):
    io_bound = True

    @staticmethod
    def forward(ctx: Any, x: Variable, y: Variable) -> Variable:
        return Variable(str(x.data) + str(y.data))


def of(name: str) -> str:
    return complete(MODEL, f"of {name}").text


class Sound(Asking):
    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        return tuple(Variable(of(n)) if wanted else None for n, wanted in zip("xy", ctx.needs_input_grad, strict=True))


class SoundLater(Asking):
    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        names = zip("xy", ctx.needs_input_grad, strict=True)
        return tuple(defer(lambda n: Variable(CLIENT(f"of {n}").text), n) if wanted else None for n, wanted in names)


class OneAnswerForBoth(Asking):
    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        said = complete(MODEL, "one remark, please").text
        return tuple(Variable(f"{n}: {said}") if w else None for n, w in zip("xy", ctx.needs_input_grad, strict=True))


class TwiceTheSameQuestion(Asking):
    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        return tuple(Variable(of("it")) if wanted else None for wanted in ctx.needs_input_grad)


class AsksForBoth(Asking):
    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        said = of("x"), of("y")
        return tuple(Variable(t) if wanted else None for t, wanted in zip(said, ctx.needs_input_grad, strict=True))


class AClientIsAskedForBoth(Asking):
    @staticmethod
    async def backward(ctx: Any, grad_out: Variable) -> Any:
        said = [(await CLIENT.acall(f"of {name}")).text for name in "xy"]
        return tuple(Variable(t) if wanted else None for t, wanted in zip(said, ctx.needs_input_grad, strict=True))


class SaysNothingOfOne(Asking):
    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        return Sound.backward(ctx, grad_out) if all(ctx.needs_input_grad) else (None, None)


def spec_of(function: type[Function]) -> TextSpec:
    def cases(make: Callable[..., Variable]) -> Iterator[TextCase]:
        yield TextCase(name="two texts", args=(make("a"), make("b")))

    return TextSpec(
        name="asking",
        function=function.apply,
        primal=lambda x, y: x + y,
        cases=cases,
        wrt=("x", "y"),
        io_bound=True,
    )


@pytest.mark.parametrize("function", [Sound, SoundLater, OneAnswerForBoth, TwiceTheSameQuestion])
def test_a_backward_that_asks_no_more_than_is_wanted_holds(function: type[Function]) -> None:
    assert not verify([spec_of(function)]).failures


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (AsksForBoth, "a model is asked what is of use only to `x`, where `x` wants no gradient"),
        (AClientIsAskedForBoth, "a model is asked what is of use only to `x`, where `x` wants no gradient"),
        (SaysNothingOfOne, "what is said of `y` is another where `x` wants no gradient"),
    ],
)
def test_a_backward_that_asks_in_vain_breaks_it(function: type[Function], says: str) -> None:
    (found,) = verify([spec_of(function)]).failures
    assert (found.law, found.finding.message) == ("none_for_data", says)


def two_answers(x: Variable, y: Variable) -> tuple[Variable, Variable]:
    return x + "!", y + "?"


@pytest.mark.parametrize("feedback", [None, ("well", "badly")])
def test_each_output_may_depend_on_one_argument_only(feedback: tuple[str, str] | None) -> None:
    def cases(make: Callable[..., Variable]) -> Iterator[TextCase]:
        yield TextCase(name="two texts", args=(make("a"), make("b")), feedback=feedback)

    spec = TextSpec(
        name="two", function=two_answers, primal=lambda x, y: (x + "!", y + "?"), cases=cases, wrt=("x", "y")
    )
    verify([spec]).check()


def test_one_variable_may_be_given_for_two_arguments() -> None:
    def cases(make: Callable[..., Variable]) -> Iterator[TextCase]:
        x = make("a")
        yield TextCase(name="a text and itself", args=(x, x), feedback=("well",))

    verify(
        [TextSpec(name="add", function=lambda x, y: x + y, primal=lambda x, y: x + y, cases=cases, wrt=("x", "y"))]
    ).check()
