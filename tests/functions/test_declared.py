"""What the page of a function says of its arguments is what its cases are, and its mathematics is said once."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gradspec.functions import FUNCTIONS
from gradspec.nn import MODULES
from gradspec.spec import FunctionSpec
from gradspec.spec._sheet import formula_tex

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
    assert spec.summary.endswith("."), f"{spec.name} has no summary"


@pytest.mark.parametrize("spec", [spec for spec in FUNCTIONS if spec.formula], ids=lambda spec: spec.name)
def test_the_mathematics_of_a_docstring_is_that_of_the_formula(spec: FunctionSpec) -> None:
    owner = spec.documented[0]
    said = plain(owner.__doc__)
    for equation in formula_tex(spec)["backward"].split(r",\qquad "):
        assert plain(equation) in said, f"the docstring of {owner.__name__} does not hold the backward of its formula"


def plain(tex: str) -> str:
    r"""Return TeX without spaces and sizes of brackets, with `x_1` for `x_{1}` and `\bar{x}_1` for `\bar{x_1}`."""
    tex = re.sub(r"\\left|\\right|\\[,;!]|\s", "", tex)
    return re.sub(r"\\bar\{(\w)_(\w)\}", r"\\bar{\1}_\2", re.sub(r"_\{(\w)\}", r"_\1", tex))
