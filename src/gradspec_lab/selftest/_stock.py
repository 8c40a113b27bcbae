"""Results of torch's own checkers on the cases of a spec: the column beside ours."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from gradspec._engine._flat import flattened
from gradspec.law import Trial, TrialOf, shown
from gradspec.laws.operator.support._call import Call
from gradspec.laws.tensor.support._call import Inputs, fresh, outputs
from gradspec.profile import load_profile
from gradspec.spec import Case, FunctionSpec, OperatorSpec
from gradspec.spec._maker import Maker

_numbers = itertools.count()


def gradcheck_slow(trial: Trial) -> None:
    """Column by column, with torch's defaults."""
    function, leaves = _closed(trial)
    gradcheck(function, leaves)


def gradcheck_fast(trial: Trial) -> None:
    """One random direction, with torch's defaults."""
    function, leaves = _closed(trial)
    gradcheck(function, leaves, fast_mode=True)


def gradgradcheck_slow(trial: Trial) -> None:
    """The backward pass, column by column, with torch's defaults."""
    function, leaves = _closed(trial)
    gradgradcheck(function, leaves)


def opcheck(trial: Trial) -> None:
    """The operator as it is called; of a Function, which `opcheck` does not take, one with its forward and backward."""
    if not isinstance(trial.spec, OperatorSpec):
        _opcheck_twin(Inputs.of(trial), trial.spec)
        return
    call = Call.of(TrialOf(spec=trial.spec, case=trial.case, profile=trial.profile, seed=trial.seed)).on_leaves()
    torch.library.opcheck(call.overload, call.args, call.kwargs)


def _opcheck_twin(inputs: Inputs, spec: FunctionSpec) -> None:
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
TOOLS: dict[str, Callable[[Trial], None]] = {
    "gradcheck": gradcheck_slow,
    "gradcheck, fast mode": gradcheck_fast,
    "gradgradcheck": gradgradcheck_slow,
    "opcheck": opcheck,
}


def judge(tool: str, spec: FunctionSpec, case: Case, seed: int = 0) -> str:
    """Return what a tool says of a function on a case: "accepts", or what it raised.

    It may kill the interpreter: ask in a child process.
    """
    trial = Trial(spec=spec, case=case, profile=load_profile("every-case"), seed=seed)
    if not spec.wrt and not (tool == "opcheck" and isinstance(spec, OperatorSpec)):
        return "nothing to check"
    torch.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            TOOLS[tool](trial)
        except Exception as error:
            return shown(error)
    return "accepts"


def cases_for(tool: str, spec: FunctionSpec, seed: int = 0) -> list[Case]:
    """Return what a tool is asked about: the first case with a tensor; all of them where it is made for what is called.

    The others would mostly make gradcheck complain about the precision of their dtype.
    """
    cases = list(spec.cases(Maker(seed, "cpu")))
    if tool == "opcheck" and isinstance(spec, OperatorSpec):
        return cases
    return [next((case for case in cases if any(isinstance(arg, Tensor) for arg in case.args)), cases[0])]


def _closed(trial: Trial) -> tuple[Callable[..., Any], tuple[Tensor, ...]]:
    """Return the function of the tensors that get a gradient, the others filled in, and these tensors."""
    flat = flattened(trial)
    inputs = Inputs.of(flat)
    return inputs.closed(flat.spec.function), tuple(inputs.leaves().values())
