r"""Without a graph a call gives the value that it gives with one: under no_grad, in inference mode, of plain tensors.

The values agree within rounding, not bit for bit: torch's own kernels may differ without a graph.

Why it matters: a model is evaluated and deployed under `torch.no_grad()` or `torch.inference_mode()`, and no
training loss shows a value that differs there.

What breaks it: a forward that reads `x.requires_grad` or `torch.is_grad_enabled()` and computes something else; one
that reads `x._version`, which a tensor of inference mode does not have.

Remedy: compute the value alike in every mode, and take evaluation as an argument of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable, raised
from gradspec.laws.tensor.support._call import Inputs, outputs
from gradspec.laws.tensor.support._compare import compare, is_one
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._reference import stop

#: What is said where each way gives its own value, again and again.
ASKS = "forward asks whether a graph is recorded"
#: The context of a call, and whether the arguments are leaves that require grad.
Way = tuple[Callable[[], AbstractContextManager[Any]], bool]
#: From what is said of a way to call to that way.
WAYS: dict[str, Way] = {
    "of arguments that require no gradient": (nullcontext, False),
    "under torch.no_grad()": (torch.no_grad, True),
    "under torch.no_grad() of arguments that require no gradient": (torch.no_grad, False),
    "under torch.inference_mode()": (torch.inference_mode, True),
    "of what torch.inference_mode() made": (torch.inference_mode, False),
}


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not any(isinstance(value, Tensor) for value in inputs.values.values()):
        return not_applicable("the call has no tensor")
    plain = (nullcontext, True)
    expected = _values(trial, inputs, plain)
    for name, way in WAYS.items():
        try:
            got = _values(trial, inputs, way)
        except Exception as error:
            return raised(error, f"a call {name}")
        for mine, theirs in zip(got.values(), expected.values(), strict=True):
            if (finding := compare(trial, f"value {name}", mine, theirs)) is not HOLDS:
                # Each again: what changes from call to call asks for no graph.
                again = quietly(lambda: [_values(trial, inputs, one) for one in (way, plain)])  # noqa: B023  # at once
                is_shown = again and is_one(again[0], got, but=expected) and is_one(again[1], expected, but=got)
                return replace(finding, likely=ASKS, reason=None) if is_shown else finding
    return HOLDS


def _values(trial: Trial, inputs: Inputs, way: Way) -> dict[str, Tensor | None]:
    """Return the values of a call by place, for comparisons outside of inference mode."""
    context, is_leaf = way
    leaves = inputs.leaves() if is_leaf else {}
    with context():
        y = trial.spec.function(*inputs.args(leaves))
    return {str(place): stop(t) for place, t in enumerate(outputs(y)) if isinstance(t, Tensor)}


INFERENCE = Law(
    name="inference",
    family="transforms",
    statement=r"F_{\text{no graph}}(x) = F(x)",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
)
