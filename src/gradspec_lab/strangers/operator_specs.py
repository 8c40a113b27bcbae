"""The operators of tests/strangers/operators as specs, made of their table, which is in no form of ours."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from gradspec import Case, FunctionSpec, OperatorSpec, Supports
from gradspec.spec import Make

OPERATORS = Path(__file__).parents[3] / "tests" / "strangers" / "operators"
#: What the reports of Functions are about, which a spec must promise to be judged by it; eager training beside.
PROMISED = {
    "RoundThrough": Supports.eager(compile_grad=True),
    "SquareByHand": Supports.eager(forward_mode=True, compile_jvp=True),
    "Scan": Supports.eager(vmap=True),
}


@cache
def subjects() -> dict[str, Mapping[str, Any]]:
    """Return the rows of the table by name."""
    return {row["name"]: row for row in _module("table").SUBJECTS}


def spec_of(name: str) -> FunctionSpec:
    """Return the spec of an operator or Function of the table."""
    row, table = subjects()[name], _module("table")
    home = _module(row["module"])
    primal = getattr(table, row["reference"])
    surrogate = getattr(table, row["surrogate"]) if row["surrogate"] else primal

    def cases(make: Make) -> Iterator[Case]:
        for number, (args, kwargs) in enumerate(row["calls"]):
            torch.manual_seed(number)
            given = (eval(text, {"torch": torch}) for text in (args, kwargs))
            yield Case(name=f"call {number}", args=next(given), kwargs=next(given))

    said: dict[str, Any] = {"name": name, "wrt": tuple(row["gradients"]), "cases": cases}
    if row["kind"] == "function":
        function = getattr(home, name).apply
        supports = PROMISED.get(name, Supports.eager())
        return FunctionSpec(function=function, primal=primal, surrogate=surrogate, supports=supports, **said)
    signature = inspect.signature(OperatorSpec.called(name))
    return OperatorSpec(
        operator=name,
        primal=_pure(primal, row["writes"], signature, lambda t: t),
        surrogate=_pure(surrogate, row["writes"], signature, torch.Tensor.detach),
        supports=replace(OperatorSpec.supports, double_backward=True),
        **said,
    )


def _pure(
    function: Callable[..., Any], writes: list[str], signature: inspect.Signature, written: Callable[..., Any]
) -> Callable[..., Any]:
    """Return what a spec takes for a reference, under the names of the schema: what is written is an output too."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if not writes:
            return function(*args, **kwargs)
        result, values = function(*args, **kwargs)
        returned = () if result is None else result if isinstance(result, tuple) else (result,)
        found = (*returned, *(written(values[name]) for name in writes))
        return found[0] if len(found) == 1 else found

    call.__signature__ = signature  # type: ignore[attr-defined]  # for `inspect.signature`
    return call


def _module(name: str) -> Any:
    # By its own name, as its author imports it: an exported program is loaded where it can be imported.
    if str(OPERATORS) not in sys.path:
        sys.path.insert(0, str(OPERATORS))
    return importlib.import_module(name)
