r"""The value and the gradient are the same whatever the strides of the inputs.

Why it matters: inputs come transposed, sliced, expanded and channels-last; a kernel that reads memory in order
reads them wrong.

What breaks it: `x.view(...)` on a non-contiguous tensor, a kernel that assumes contiguous memory.

Remedy: use `reshape`, or call `contiguous()` first.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from traceback import walk_tb
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable, raised
from gradspec.laws.tensor.support._call import Inputs, differentiable, gradients, like, outputs, vjp
from gradspec.laws.tensor.support._compare import Results, compare, compare_all
from gradspec.laws.tensor.support._reference import module_state, on_spec_side, plain_call
from gradspec.laws.tensor.support._strides import (
    REFUSED,
    LayOut,
    Tensors,
    contiguous_of,
    has_strides,
    readings_of,
    with_cause_of_strides,
)

#: What is said where the result is that of the numbers as they lie in memory, and where it is right without strides.
STRIDES = "memory is read as if it were contiguous: as_strided(), data_ptr(), a kernel without strides"
#: How a line calls a view, and how it writes in place to something.
_VIEWS, _WRITTEN = ".view(", re.compile(r"\w_\(|[-+*/]=|\]\s*=[^=]")
CONTIGUOUS = "right where the same numbers are contiguous: strides decide what is computed, so call contiguous() first"

#: Returns what is compared, of the arguments of a call.
Call = Callable[[Tensors], Results]


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not any(differentiable(value) for value in inputs.values.values()):
        return not_applicable("no floating-point input in this case")
    plain = plain_call(trial.spec, inputs)
    primal = trial.spec.primal if plain is not trial.spec.function else plain
    expected = outputs(on_spec_side("primal", primal, *inputs.args()))
    # Of a spike of float32 the cotangent is one that a reference in float64 would not round.
    v = like(outputs(trial.spec.function(*inputs.args(inputs.leaves()))), trial.seed)
    right = vjp(plain, inputs, v) if inputs.wrt else {}
    for name, lay_out in _LAYOUTS.items():
        laid_out = Inputs(_laid_out(trial, inputs, lay_out), inputs.wrt)
        try:
            y = outputs(trial.spec.function(*laid_out.args()))
            got = vjp(trial.spec.function, laid_out, seed=trial.seed) if inputs.wrt else {}
        except Exception as error:
            return raised(error, f"inputs that are {name}", likely=_likely(error))
        for place, (mine, theirs) in enumerate(zip(y, expected, strict=True)):
            if (finding := compare(trial, f"value ({name} inputs)", mine, theirs)) is not HOLDS:
                return _explained(trial, inputs, lay_out, finding, _value(trial, place), {"value": theirs})
        finding = compare_all(trial, "gradient", got, right, when=f"{name} inputs")
        if finding is not HOLDS:
            return _explained(trial, inputs, lay_out, finding, _gradient(trial, inputs), right)
    return HOLDS


def _likely(error: Exception) -> str:
    """Return what to do about a view that torch refuses; a reshape of what is written to would be a copy."""
    if REFUSED not in str(error):
        return ""
    line = next((line for frame, _ in walk_tb(error.__traceback__) if _VIEWS in (line := _line(frame))), "")
    if _WRITTEN.search(line):
        return "view() of memory in another order, which is written to: make it contiguous, as torch.zeros(x.shape) is"
    return "view() where reshape() is needed"


def _line(frame: FrameType) -> str:
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno)


def _value(trial: Trial, place: int) -> Call:
    return lambda values: {"value": outputs(trial.spec.function(*values.values()))[place]}


def _gradient(trial: Trial, inputs: Inputs) -> Call:
    def call(values: Tensors) -> dict[str, Tensor | None]:
        leaves = {name: values[name].detach().requires_grad_() for name in inputs.wrt}
        y = outputs(trial.spec.function(*{**values, **leaves}.values()))
        return gradients(y, leaves, like(y, trial.seed))

    return call


def _explained(
    trial: Trial,
    inputs: Inputs,
    lay_out: LayOut,
    finding: Finding,
    call: Call,
    expected: Results,
) -> Finding:
    """Return the finding with its cause; without one where the inputs are contiguous, and not the cause then."""
    if lay_out is torch.Tensor.contiguous:
        return finding

    def strided() -> Tensors:
        copies = dict(zip(inputs.values, inputs.args(), strict=True))
        return _laid_out(trial, Inputs(copies, inputs.wrt), lay_out)

    return with_cause_of_strides(
        finding,
        expected,
        lambda: call(strided()),
        lambda: call(contiguous_of(strided())),
        lambda: map(call, readings_of(strided())),
        memory=STRIDES,
        asked=CONTIGUOUS,
    )


def _laid_out(trial: Trial, inputs: Inputs, lay_out: LayOut) -> dict[str, Any]:
    """Return the arguments in other strides.

    Parameters and buffers of a module come in another order, as `channels_last` has them, and never with gaps: nobody
    keeps them so, and the batch normalisation of torch misreads them then.
    """
    state = module_state(trial.spec) if lay_out is _sliced else frozenset[str]()
    strided = {n: v for n, v in inputs.values.items() if n not in state and has_strides(v)}
    return {**inputs.values, **{n: lay_out(v) for n, v in strided.items()}}


def _transposed(t: Tensor) -> Tensor:
    dims = tuple(reversed(range(t.ndim)))
    return t.permute(dims).contiguous().permute(dims)


def _sliced(t: Tensor) -> Tensor:
    return torch.stack((t, t), -1)[..., 0]


_LAYOUTS: dict[str, LayOut] = {"contiguous": torch.Tensor.contiguous, "transposed": _transposed, "sliced": _sliced}


LAYOUT = Law(
    name="layout",
    family="inputs",
    statement=r"F(x) = F(\operatorname{contiguous}(x))",
    check=_check,
    doc=__doc__ or "",
    requires=("primal", "vjp"),
)
