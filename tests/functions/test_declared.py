"""What the page of a function says of its arguments is what its cases are, and its mathematics is said once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from gradspec.functions import FUNCTIONS
from gradspec.nn import MODULES
from gradspec.spec import Argument, FunctionSpec
from gradspec.spec._maker import Maker
from gradspec.spec._sheet import formula_tex

specs = pytest.mark.parametrize("spec", FUNCTIONS, ids=lambda spec: spec.name)
#: "(B, D)", "(2,)", "()".
SYMBOLS = re.compile(r"\((?:\w+(?:, \w+)*,?)?\)")
#: A word that an argument's dtype may open with, and the dtypes that it stands for.
KINDS = {
    "floating": lambda dtype: dtype.is_floating_point,
    "real": lambda dtype: not dtype.is_complex,
    **{
        name: (lambda dtype, name=name: str(dtype) == f"torch.{name}") for name in ("int64", "int32", "float32", "bool")
    },
}


def given(spec: FunctionSpec) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and arguments of each case."""
    for case in spec.cases(Maker(0, "cpu")):
        yield case.name, dict(zip(spec.parameters, case.args, strict=False)) | dict(case.kwargs)


def shape_faults(spec: FunctionSpec, arguments: tuple[Argument, ...]) -> Iterator[str]:
    """Yield each shape of a case that is not the declared one; a letter is one size in all arguments of a case."""
    for case, values in given(spec):
        sizes: dict[str, int] = {}
        for argument in arguments:
            value = values.get(argument.name)
            shape = argument.shape.strip("`")
            if not SYMBOLS.fullmatch(shape) or not isinstance(value, torch.Tensor):
                continue
            names = re.findall(r"\w+", shape)
            fits = len(names) == value.ndim and all(
                size == (int(name) if name.isdecimal() else sizes.setdefault(name, size))
                for name, size in zip(names, value.shape, strict=True)
            )
            if not fits:
                got = tuple(value.shape)
                yield f"{spec.name}, case {case!r}: {argument.name} has shape {got}, declared as {shape}"


def dtype_faults(spec: FunctionSpec) -> Iterator[str]:
    for case, values in given(spec):
        for argument in spec.arguments:
            value = values.get(argument.name)
            declared = KINDS.get(re.split(r"\W", argument.dtype)[0])
            open_ended = " and " in argument.dtype
            if declared and not open_ended and isinstance(value, torch.Tensor) and not declared(value.dtype):
                dtype = str(value.dtype).removeprefix("torch.")
                yield f"{spec.name}, case {case!r}: {argument.name} has dtype {dtype}, declared as {argument.dtype}"


@specs
def test_the_declared_shapes_are_those_of_the_cases(spec: FunctionSpec) -> None:
    assert list(shape_faults(spec, spec.arguments))[:1] == []


@specs
def test_the_declared_dtypes_are_those_of_the_cases(spec: FunctionSpec) -> None:
    assert list(dtype_faults(spec))[:1] == []


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


def test_a_wrong_shape_is_found() -> None:
    (spec,) = (spec for spec in FUNCTIONS if spec.name == "linear_average_op")
    wrong = tuple(Argument(name=a.name, type=a.type, shape="(B, N)", text=a.text) for a in spec.arguments[2:3])
    x, *_ = spec.arguments
    assert next(shape_faults(spec, wrong), None) is None, "one argument alone says nothing of B and N"
    assert "memory has shape" in next(shape_faults(spec, (x, *wrong)))
