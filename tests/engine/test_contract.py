"""What is said of an argument is written in known words, and the cases and wrong calls of a spec are held to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from gradspec import Supports, verify
from gradspec.functions import FUNCTIONS
from gradspec.laws import LAWS
from gradspec.nn import MODULES
from gradspec.operators import OPERATORS
from gradspec.spec import Argument, Case, FunctionSpec, Make, Misuse, Spec
from gradspec.spec._contract import contract_faults
from gradspec.spec._kinds import maker_of

PRIMAL = [law for law in LAWS if law.name == "primal"]


def said(**words: Any) -> Argument:
    return Argument(name="x", type="Tensor", text="A tensor.", **words)


def cases(make: Make) -> Iterator[Case]:
    yield Case(name="rows", args=(make(3, 4), torch.tensor([0, 2, 3]), 0.0))
    yield Case(name="float32", args=(make(3, 4, dtype=torch.float32), torch.tensor([1, 1, 3]), 1.0))


def misuses(make: Make) -> Iterator[Misuse]:
    x, y = make(3, 4), torch.tensor([0, 1, 2])
    wrong = {
        "integers": (make(3, 4, dtype=torch.int64), y, 0.5),
        "indices in int32": (x, y.int(), 0.5),
        "beyond 3": (x, y + 2, 0.5),
        "below 0": (x, y - 1, 0.5),
        "momentum of 2": (x, y, 2.0),
        "momentum of -1": (x, y, -1.0),
    }
    for name, args in wrong.items():
        yield Misuse(case=Case(name=name, args=args), error=ValueError, match="")


ARGUMENTS = {
    "x": Argument(name="x", type="Tensor", shape="(B, N)", dtype="floating", text="The rows."),
    "y": Argument(name="y", type="Tensor", shape="(B,)", dtype="int64", range="0 <= y < N", text="Indices."),
    "momentum": Argument(name="momentum", type="float", range="0 <= momentum <= 1", text="The share."),
}


def faults(
    *, calls: Callable[[Make], Iterator[Case]] = cases, wrong: Any = misuses, **changed: dict[str, str]
) -> list[str]:
    """Return what is wrong with a spec whose arguments are those above, but for what is changed of one."""
    arguments = tuple(replace(ARGUMENTS[name], **changed.get(name, {})) for name in ARGUMENTS)
    spec = FunctionSpec(
        name="picked",
        function=lambda x, y, momentum: x * momentum,
        primal=lambda x, y, momentum: x * momentum,
        surrogate=lambda x, y, momentum: x * momentum,
        wrt=("x",),
        cases=calls,
        raises=wrong,
        arguments=arguments,
        supports=Supports.all(),
    )
    make = maker_of("function")(0, "cpu")
    return list(contract_faults(spec, list(calls(make)), list(wrong(make)) if wrong else []))


def without(generator: Callable[[Make], Iterator[Any]], name: str) -> Callable[[Make], Iterator[Any]]:
    def left(make: Make) -> Iterator[Any]:
        yield from (one for one in generator(make) if getattr(one, "case", one).name != name)

    return left


@pytest.mark.parametrize("spec", [*FUNCTIONS, *OPERATORS, *MODULES], ids=lambda spec: spec.name)
@pytest.mark.parametrize("seed", range(20))
def test_our_own_specs_are_what_they_say(spec: Spec, seed: int) -> None:
    make = maker_of(spec.kind)(seed, "cpu")
    assert list(contract_faults(spec, list(spec.cases(make)), list(spec.raises(make)) if spec.raises else [])) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"shape": "any, `S`"}, "the shape 'any, `S`' is not known: write 'any', sizes such as"),
        ({"shape": "B by D"}, "the shape 'B by D' is not known"),
        ({"dtype": "floats"}, "the dtype 'floats' is not known: write 'floating', 'complex', 'integer'"),
        ({"dtype": "floating and complex"}, "put other words into text"),
        ({"dtype": "int65"}, "the dtype 'int65' is not known"),
        ({"range": "between 0 and 1"}, "the range 'between 0 and 1' is not known: write 'x > 0'"),
        ({"range": "0 <= y <= 1"}, "the range '0 <= y <= 1' is not known"),
    ],
    ids=lambda value: next(iter(value.values())) if isinstance(value, dict) else "",
)
def test_a_word_that_is_not_known_is_refused_in_one_line(words: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=r"\Aargument 'x': [^\n]*\Z") as refusal:
        said(**words)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    "words",
    [
        {"shape": word}
        for word in ("any", "()", "(2,)", "(B, D)", "(B, ...)", "(B, 3, H, W)", "same as y", "broadcasts to y")
    ]
    + [{"dtype": word} for word in ("any", "real", "floating or complex", "int64", "same as y", "same as the module")]
    + [{"range": word} for word in ("x > 0", "0 <= x <= 1", "0 <= x < N", "x[0] > 0, x[1] < 2", "x > -1, not checked")],
    ids=lambda words: next(iter(words.values())),
)
def test_a_known_word_is_taken(words: dict[str, str]) -> None:
    said(**words)


def test_what_is_right_has_no_fault() -> None:
    assert faults() == []


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"x": {"shape": "(N, B)"}}, "case 'rows': y has the shape (3,), and is said to have (B,)"),
        ({"x": {"shape": "(B, 5)"}}, "case 'rows': x has the shape (3, 4), and is said to have (B, 5)"),
        ({"y": {"shape": "same as x"}}, "case 'rows': y has the shape (3,), and is said to have same as x"),
        ({"y": {"shape": "broadcasts to x"}}, "case 'rows': y has the shape (3,), and is said to have broadcasts to x"),
        ({"y": {"dtype": "int32"}}, "case 'rows': y has the dtype int64, and is said to have int32"),
        ({"y": {"dtype": "same as x"}}, "case 'rows': y has the dtype int64, and is said to have same as x"),
        ({"y": {"dtype": "same as z"}}, "y is said to be as z, which is not an argument"),
        ({"y": {"range": "1 <= y < N"}}, "case 'rows': y is not within 1 <= y < N"),
        ({"x": {"dtype": "real"}}, "x is said to have the dtype real, and has int64 in no case: add one"),
        ({"y": {"range": "0 <= y <= N"}}, "y is said to be in 0 <= y <= N, and no case is at the end `<= N`: add one"),
        (
            {"momentum": {"range": "0 <= momentum <= 2"}},
            "momentum is said to be in 0 <= momentum <= 2, and no case is at the end `<= 2`: add one",
        ),
    ],
    ids=lambda value: (
        " ".join(f"{n} {w}" for n, said in value.items() for w in said.values()) if isinstance(value, dict) else ""
    ),
)
def test_one_wrong_word_is_found(changed: dict[str, dict[str, str]], fault: str) -> None:
    assert fault in faults(**changed)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("rows", "y is said to be in 0 <= y < N, and no case is at the end `>= 0`: add one"),
        ("rows", "x is said to have the dtype floating, and has float64 in no case: add one"),
        ("float32", "x is said to have the dtype floating, and has float32 in no case: add one"),
        ("float32", "momentum is said to be in 0 <= momentum <= 1, and no case is at the end `<= 1`: add one"),
    ],
)
def test_what_no_case_shows_is_found(name: str, fault: str) -> None:
    assert fault in faults(calls=without(cases, name))


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("integers", "x is said to have the dtype floating, and no wrong call gives another one: add one"),
        ("indices in int32", "y is said to have the dtype int64, and no wrong call gives another one: add one"),
        ("beyond 3", "y is said to be in 0 <= y < N, and no wrong call is beyond `< N`: add one, or write "),
        ("below 0", "y is said to be in 0 <= y < N, and no wrong call is beyond `>= 0`: add one, or write "),
        ("momentum of 2", "momentum is said to be in 0 <= momentum <= 1, and no wrong call is beyond `<= 1`: add one"),
    ],
)
def test_what_no_wrong_call_shows_is_found(name: str, fault: str) -> None:
    assert any(found.startswith(fault) for found in faults(wrong=without(misuses, name)))


def test_a_spec_without_wrong_calls_is_asked_for_none_and_so_is_a_range_that_is_not_checked() -> None:
    assert faults(wrong=None) == []
    left = without(misuses, "momentum of 2")
    assert faults(wrong=left, momentum={"range": "0 <= momentum <= 1, not checked"}) == []


def test_a_spec_that_says_nothing_is_not_judged_and_one_that_is_wrong_is_refused() -> None:
    function = torch.sin

    def one(make: Make) -> Iterator[Case]:
        yield Case(name="three numbers", args=(make(3),))

    spec = FunctionSpec(
        name="sine",
        function=function,
        primal=lambda x: x.sin(),
        surrogate=lambda x: x.sin(),
        wrt=("x",),
        cases=one,
        arguments=(said(),),
        supports=Supports.all(),
    )
    assert not verify([spec], PRIMAL).failures
    with pytest.raises(ValueError, match=r"^spec 'sine', case 'three numbers': x has the shape \(3,\), and is said"):
        verify([replace(spec, arguments=(said(shape="(B, D)"),))], PRIMAL)
