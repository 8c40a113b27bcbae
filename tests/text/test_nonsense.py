"""What makes no sense is refused where it is given, and nothing has changed then."""

from __future__ import annotations

import math
from typing import Any

import pytest

from gradspec.text import Function, Variable, defer
from gradspec.text.lm import Budget, Client
from gradspec.text.ops import evaluate, exact_match
from gradspec.text.optim import TextualGradientDescent


def optimizer() -> TextualGradientDescent:
    return TextualGradientDescent([Variable("a", requires_grad=True)], lambda m: "<new>b</new>", momentum=1)


STATE: dict[str, Any] = {
    "version": 1,
    "prompts_version": 2,
    "momentum": 1,
    "constraints": ["short"],
    "params": ["b"],
    "past": [[["a", "why"]]],
}


def test_the_state_is_one_that_is_taken() -> None:
    taken = optimizer()
    taken.load_state_dict(STATE)
    assert taken.state_dict() == STATE


@pytest.mark.parametrize(
    "wrong",
    [
        {"momentum": -1},
        {"momentum": math.nan},
        {"momentum": 1.5},
        {"momentum": True},
        {"momentum": None},
        {"constraints": "short"},
        {"constraints": [3]},
        {"constraints": None},
        {"params": "b"},
        {"params": [3]},
        {"params": [math.nan]},
        {"past": []},
        {"past": [[["a"]]]},
        {"past": [[["a", 3]]]},
        {"past": [[["a", "b"]] * 2]},
        {"past": None},
        {"past": [None]},
    ],
)
def test_a_state_that_makes_no_sense_changes_nothing(wrong) -> None:
    kept = optimizer()
    before = kept.state_dict()
    with pytest.raises(ValueError, match=f"the state's {next(iter(wrong))} "):
        kept.load_state_dict(STATE | wrong)
    assert kept.state_dict() == before


@pytest.mark.parametrize("missing", STATE)
def test_a_state_that_lacks_something_changes_nothing(missing) -> None:
    kept = optimizer()
    before = kept.state_dict()
    with pytest.raises(ValueError, match=f"the state has no '{missing}'"):
        kept.load_state_dict({name: value for name, value in STATE.items() if name != missing})
    assert kept.state_dict() == before
    with pytest.raises(TypeError, match="a state is a dict"):
        kept.load_state_dict([])  # type: ignore[arg-type]


@pytest.mark.parametrize("momentum", [math.nan, 1.5, "2", True])
def test_a_momentum_that_counts_nothing(momentum) -> None:
    with pytest.raises(ValueError, match="momentum counts earlier texts"):
        TextualGradientDescent([Variable("a", requires_grad=True)], lambda m: "", momentum=momentum)


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, "1", None, 1j])
def test_a_score_that_is_no_number(score) -> None:
    with pytest.raises((TypeError, ValueError), match="a scorer returns a number and a text"):
        evaluate(lambda p, t: (score, "why"), Variable("x"), "y")


def test_a_reduction_to_no_number() -> None:
    with pytest.raises(ValueError, match="reduction returned nan"):
        exact_match(Variable(["x", "y"]), ["x", "y"], reduction=lambda scores: math.nan)


def test_wrong_arguments_of_evaluate() -> None:
    with pytest.raises(TypeError, match="a prediction is a Variable, not 'x'"):
        evaluate(lambda p, t: (1, ""), "x", "y")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="scorer is not callable: 3"):
        evaluate(3, Variable("x"), "y")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"success is not callable: 0\.5"):
        exact_match(Variable("x"), "y", success=0.5)
    with pytest.raises(ValueError, match="there is no prediction to score"):
        exact_match(Variable([]), [])


class Take(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, save: bool = False) -> Variable:
        if save:
            ctx.save_for_backward([ctx.cycle])
        return Variable("a")

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        return grad_out, None


def loop(*items: Any) -> list[Any]:
    found = [*items]
    found.append(found)
    return found


def test_an_argument_that_holds_itself_is_named() -> None:
    for wrong in (loop(Variable("a")), {"a": loop()}, [(loop(),)]):
        with pytest.raises(ValueError, match="an argument of Take holds itself, or is nested too deeply"):
            Take.apply(wrong)


def test_what_is_saved_may_not_hold_itself() -> None:
    class Save(Take):
        @staticmethod
        def forward(ctx: Any, x: Any, save: bool = False) -> Variable:
            ctx.save_for_backward(loop(x))
            return Variable("a")

    with pytest.raises(ValueError, match="what Save saved for backward holds itself, or is nested too deeply"):
        Save.apply(Variable("a", requires_grad=True))


@pytest.mark.parametrize("limit", [1, 4])
def test_nor_may_what_forward_or_backward_returns(limit) -> None:
    class Out(Take):
        @staticmethod
        def forward(ctx: Any, x: Any, save: bool = False) -> Any:
            return loop()

    with pytest.raises(ValueError, match="what Out returned holds itself, or is nested too deeply"):
        Out.apply(Variable("a", requires_grad=True))

    class Back(Take):
        @staticmethod
        def backward(ctx: Any, grad_out: Variable) -> Any:
            return loop(defer(Variable, "g")), None

    x = Variable("a", requires_grad=True)
    y = Back.apply(x)
    with pytest.raises((ValueError, RuntimeError), match=r"a backward returned holds itself|got list"):
        y.backward(Variable("g"), max_concurrency=limit)
    assert x.grad is None


def test_an_option_that_holds_itself_is_named() -> None:
    with pytest.raises(ValueError, match="the request holds itself, or is nested too deeply"):
        Client(lambda m, **_: "a", name="m", budget=Budget(tokens=9999))("hi", max_tokens=1, stop=loop("a"))
