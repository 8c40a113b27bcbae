"""What an audit holds a function to where nothing is promised: what the function itself does in eager mode."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch

from gradspec._audit._probe import Measured
from gradspec.laws.tensor.support._call import outputs
from gradspec.laws.tensor.support._reference import stand_in
from gradspec.spec import Case, Effects, FunctionSpec


def eager_spec(
    name: str,
    call: Callable[..., Any],
    implementation: type | None,
    signature: inspect.Signature,
    cases: tuple[Case, ...],
    measured: Measured,
    seed: int,
) -> FunctionSpec:
    """Return a spec that promises what the function itself does in eager mode."""

    def seeded(*args: Any) -> Any:
        torch.manual_seed(seed)
        return call(*args)

    function = seeded if measured.random else call

    def itself(*args: Any) -> Any:
        return function(*args)

    def differentiated(*args: Any) -> Any:
        y = function(*args)
        if not measured.constant:
            return y
        # What carries no gradient moves with the arguments all the same: its derivative is declared to be zero.
        return tuple(torch.zeros_like(t) if k in measured.constant else t for k, t in enumerate(outputs(y)))

    for form in (itself, differentiated):
        form.__signature__ = signature  # type: ignore[attr-defined]  # what `inspect.signature` reads
        form.__module__ = getattr(implementation or call, "__module__", None) or "__main__"
        stand_in(form)
    return FunctionSpec(
        name=name,
        function=function,
        primal=itself,
        surrogate=differentiated,
        wrt=measured.wrt,
        cases=lambda make: iter(cases),
        implementation=implementation,
        effects=Effects(view_of=measured.view_of),
    )
