"""What the page of a function says of its arguments is what its cases are, and its mathematics is said once."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest
import sympy
from sympy.parsing.sympy_parser import implicit_multiplication, parse_expr, standard_transformations

from gradspec.functions import FUNCTIONS
from gradspec.nn import MODULES
from gradspec.operators import OPERATORS
from gradspec.spec import FunctionSpec
from gradspec.spec._formula_tex import formula_tex, stated_tex, sympy_formula
from test_raises import SPECS, content, documents

specs = pytest.mark.parametrize("spec", FUNCTIONS, ids=lambda spec: spec.name)


@specs
def test_the_arguments_say_where_a_gradient_flows(spec: FunctionSpec) -> None:
    for argument in spec.arguments:
        flows, said = argument.name in spec.wrt, argument.gradient
        assert flows <= said, f"{spec.name}: a gradient flows to {argument.name}, and its arguments do not say so"
        assert said <= flows, f"{spec.name}: no gradient flows to {argument.name}, and its arguments say so"


@specs
def test_every_argument_is_on_the_page(spec: FunctionSpec) -> None:
    assert [argument.name for argument in spec.arguments] == list(spec.parameters)


@pytest.mark.parametrize("spec", [*FUNCTIONS, *MODULES], ids=lambda spec: spec.name)
def test_every_spec_says_where_it_comes_from(spec: Any) -> None:
    assert spec.references, f"{spec.name} names no reference"
    assert spec.headline.endswith("."), f"{spec.name} has no summary"
    assert not spec.summary, f"{spec.name}: leave the summary out: the first words of its docstring are shown"


@pytest.mark.parametrize("spec", [spec for spec in FUNCTIONS if spec.formula], ids=lambda spec: spec.name)
def test_the_mathematics_of_a_docstring_is_that_of_the_formula(spec: FunctionSpec) -> None:
    owner = spec.documented[0]
    said = plain(owner.__doc__)
    for equation in formula_tex(spec)["backward"].split(r",\qquad "):
        assert plain(equation) in said, f"the docstring of {owner.__name__} does not hold the backward of its formula"


@pytest.mark.parametrize("spec", [spec for spec in FUNCTIONS if spec.formula], ids=lambda spec: spec.name)
def test_the_forward_of_a_docstring_is_that_of_the_formula(spec: FunctionSpec) -> None:
    owner, (primal, _, symbols) = spec.documented[0], sympy_formula(spec)
    left, _, right = stated_tex(owner)[0].partition(" = ")
    assert left == "y", f"the docstring of {owner.__name__} does not begin with the equation of y"
    said = read(right, symbols)
    assert sympy.simplify(said - primal) == 0, f"the docstring of {owner.__name__} says y = {said}, and y is {primal}"


@pytest.mark.parametrize("spec", [*FUNCTIONS, *OPERATORS], ids=lambda spec: spec.name)
def test_what_a_docstring_says_of_memory_is_the_declared_effect(spec: FunctionSpec) -> None:
    for name, said in sentences(spec):
        views = set(re.findall(r"\bview of `(\w+)`", said))
        own = re.search(r"\bnew tensor\b|\b[Rr]eturn a copy of\b|\bmemory of its own\b|\bshares no memory\b", said)
        view = spec.effects.view_of
        assert views <= {view}, f"{name} says {said!r}, and the effects of {spec.name} say view_of={view!r}"
        assert not (own and view), f"{name} says {said!r}, and the effects of {spec.name} say view_of={view!r}"


@pytest.mark.parametrize("spec", [spec for spec in FUNCTIONS if spec.effects.view_of], ids=lambda spec: spec.name)
def test_a_view_is_said_to_be_one(spec: FunctionSpec) -> None:
    for document in spec.documented:
        returns = (getattr(document, "apply", document).__doc__ or "").partition("Returns:")[2].partition("\n\n")[0]
        name = document.__name__
        assert f"view of `{spec.effects.view_of}`" in returns, f"{name} does not say that it returns a view"


@pytest.mark.parametrize("spec", [*FUNCTIONS, *OPERATORS], ids=lambda spec: spec.name)
def test_the_arguments_of_a_docstring_have_the_shapes_and_dtypes_of_the_spec(spec: FunctionSpec) -> None:
    described = {argument.name: argument for argument in spec.arguments}
    for document in spec.documented:
        for name, text in entries(getattr(document, "apply", document)):
            argument, first = described.get(name), " ".join(text.split()).partition(": ")[0].partition(". ")[0]
            if argument is None:
                continue
            shape, dtype = (
                re.match(r"shape (\([^)]*\))", first),
                re.search(r"\b(floating|int\d+|bool|complex)\b", first),
            )
            other = re.search(r"\bdtype (?:and device )?of `(\w+)`", first)
            said = f"{document.__name__}, Args: {name} is {first!r}, and the spec {spec.name} says"
            assert not shape or not argument.shape.startswith("(") or shape[1] == argument.shape, (
                f"{said} {argument.shape}"
            )
            assert not dtype or argument.dtype == "any" or dtype[1] == argument.dtype, f"{said} {argument.dtype}"
            assert not other or argument.dtype in (f"same as {other[1]}", "real"), f"{said} {argument.dtype}"


def entries(document: Any) -> list[tuple[str, str]]:
    """Return name and text of each entry of the sections of a docstring."""
    return re.findall(r"^    (\w+): (.*(?:\n        .*)*)", inspect.getdoc(document) or "", re.MULTILINE)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_what_an_argument_means_is_what_its_docstring_says(spec: Any) -> None:
    described = {argument.name: argument.text for argument in spec.arguments}
    for owner, document in documents(spec):
        for name, text in entries(document):
            if name in described:
                other = missing(described[name], text)
                said = f"{owner}, Args: {name} is {' '.join(text.split())!r}"
                assert not other, f"{said}, and the spec {spec.name} says {described[name]!r}: {', '.join(other)}"


def missing(argument: str, text: str) -> list[str]:
    """Return the words of what the text of an argument says first that a docstring, which is about the same, has not.

    It is about the same if it has two of these words; it may say only what the values are.
    """
    first, said = content(re.split(r"[.;,:](?:\s|$)", argument)[0]) - {"any"}, content(text)
    return sorted(first - said) if len(first & said) > 1 else []


def test_words_of_an_argument_are_compared_where_both_say_what_it_means() -> None:
    said = "The share of the old row in the new."
    assert missing(said, "the share of the old row in the new one, between 0 and 1.") == []
    assert missing("The share of the embedding in the new.", f"{said[:-1]} one") == ["embed"]
    assert missing("The first branch.", "any shape, floating.") == []


@specs
def test_what_a_docstring_says_to_change_in_place_is_what_is_written(spec: FunctionSpec) -> None:
    call = getattr(spec.documented[0], "apply", spec.documented[0])
    changed = {name for name, text in entries(call) if name in spec.parameters and re.search(r"\bin\s+place\b", text)}
    assert changed == set(spec.effects.writes), f"{call.__qualname__} says that {changed} change in place"


def sentences(spec: FunctionSpec) -> Iterator[tuple[str, str]]:
    """Yield name and text of each sentence of the docstrings of a spec, without what it says of another place."""
    for document in spec.documented:
        for owner in (document, *([document.apply] if hasattr(document, "apply") else [])):
            for sentence in re.split(r"(?<=[.:])\s+", inspect.getdoc(owner) or ""):
                text = " ".join(sentence.split()).partition(", where ")[0]
                if not text.startswith("Where "):
                    yield owner.__qualname__, text


def read(tex: str, symbols: dict[str, Any]) -> Any:
    r"""Return the sympy expression of a simple TeX term, as `\alpha x_1 + (1 - \alpha) x_2`."""
    text = re.sub(r"\\left|\\right|\\[,;!]", " ", tex)
    text = re.sub(r"_\{?(\w)\}?", r"\1", re.sub(r"\\(\w+)", r"\1 ", text))
    text = re.sub(r"\^(?:\{(.*?)\}|(\w))", r"**(\1\2)", text)
    how = (*standard_transformations, implicit_multiplication)
    return parse_expr(text, local_dict=symbols, transformations=how)


def plain(tex: str) -> str:
    r"""Return TeX without spaces and sizes of brackets, with `x_1` for `x_{1}` and `\bar{x}_1` for `\bar{x_1}`."""
    tex = re.sub(r"\\left|\\right|\\[,;!]|\s", "", tex)
    return re.sub(r"\\bar\{(\w)_(\w)\}", r"\\bar{\1}_\2", re.sub(r"_\{(\w)\}", r"_\1", tex))
