"""What torch's own checkers say of a function, on the cases of its spec: the column beside ours."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from gradspec.law import Trial, shown
from gradspec.laws.tensor.support._call import Inputs, fresh, outputs
from gradspec.profile import load_profile
from gradspec.spec import Case, FunctionSpec
from gradspec.spec._maker import Maker

_numbers = itertools.count()


def gradcheck_slow(inputs: Inputs, spec: FunctionSpec) -> None:
    """Column by column, with torch's defaults."""
    gradcheck(inputs.closed(spec.function), _leaves(inputs))


def gradcheck_fast(inputs: Inputs, spec: FunctionSpec) -> None:
    """One random direction, with torch's defaults."""
    gradcheck(inputs.closed(spec.function), _leaves(inputs), fast_mode=True)


def gradgradcheck_slow(inputs: Inputs, spec: FunctionSpec) -> None:
    """The backward pass, column by column, with torch's defaults."""
    gradgradcheck(inputs.closed(spec.function), _leaves(inputs))


def opcheck(inputs: Inputs, spec: FunctionSpec) -> None:
    """A custom operator with this forward and backward: `opcheck` takes no autograd Function."""
    function: Any = spec.autograd_function
    kinds = {bool: "bool", int: "int", float: "float", str: "str"}
    typed = [
        f"{'Tensor' if isinstance(value, Tensor) else kinds[type(value)]} {name}"
        for name, value in inputs.values.items()
    ]
    count = len(outputs(inputs.closed(spec.function)(*inputs.tensors())))
    returned = "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"
    operator = torch.library.custom_op(
        f"gradspec_selftest::twin_{next(_numbers)}",
        function.forward,
        mutates_args=(),
        schema=f"({', '.join(typed)}) -> {returned}",
    )
    operator.register_fake(function.forward)
    operator.register_autograd(function.backward, setup_context=function.setup_context)
    args = inputs.args({name: fresh(inputs.values[name]).requires_grad_() for name in inputs.wrt})
    torch.library.opcheck(operator, args)


#: In the order of the table.
TOOLS: dict[str, Callable[[Inputs, FunctionSpec], None]] = {
    "gradcheck": gradcheck_slow,
    "gradcheck, fast mode": gradcheck_fast,
    "gradgradcheck": gradgradcheck_slow,
    "opcheck": opcheck,
}


def judge(tool: str, spec: FunctionSpec, case: Case, seed: int = 0) -> str:
    """Return what a tool says of a function on a case: "accepts", or what it raised.

    It may kill the interpreter: ask in a child process.
    """
    inputs = Inputs.of(Trial(spec=spec, case=case, profile=load_profile("quick"), seed=seed))
    if not inputs.wrt:
        return "nothing to check"
    torch.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            TOOLS[tool](inputs, spec)
        except Exception as error:
            return shown(error)
    return "accepts"


def first_case(spec: FunctionSpec, seed: int = 0) -> Case:
    """Return the first case of a spec on which its function computes a gradient."""
    cases = list(spec.cases(Maker(seed, "cpu")))
    return next((case for case in cases if any(isinstance(arg, Tensor) for arg in case.args)), cases[0])


def _leaves(inputs: Inputs) -> tuple[Tensor, ...]:
    return tuple(inputs.leaves().values())
