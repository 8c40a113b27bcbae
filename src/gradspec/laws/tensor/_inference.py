r"""Without a graph a call gives the value that it gives with one: under no_grad, in inference mode, of plain tensors.

The values agree within rounding, not bit for bit: torch's own kernels may differ without a graph.

Why it matters: a model is evaluated and deployed under `torch.no_grad()` or `torch.inference_mode()`, and no
training loss shows a value that differs there.

What breaks it: a forward that reads `x.requires_grad` or `torch.is_grad_enabled()` and computes something else; one
that reads `x._version`, which a tensor of inference mode does not have.

Remedy: compute the value alike in every mode, and take evaluation as an argument of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable, raised
from gradspec.laws.tensor.support._call import Inputs, outputs
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._reference import stop

#: From what is said of a way to call to its context, and whether the arguments are leaves that require grad.
WAYS: dict[str, tuple[Callable[[], AbstractContextManager[Any]], bool]] = {
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
    expected = list(_values(trial.spec.function(*inputs.args(inputs.leaves()))))
    for way, (context, is_leaf) in WAYS.items():
        leaves = inputs.leaves() if is_leaf else {}
        try:
            with context():
                got = list(_values(trial.spec.function(*inputs.args(leaves))))
        except Exception as error:
            return raised(error, f"a call {way}")
        for mine, theirs in zip(got, expected, strict=True):
            finding = compare(trial, f"value {way}", mine, theirs, likely="forward asks whether a graph is recorded")
            if finding is not HOLDS:
                return finding
    return HOLDS


def _values(y: Any) -> Iterator[Tensor]:
    # A copy, made outside of inference mode: what is made in it may be compared, and not much else.
    return (stop(t) for t in outputs(y) if isinstance(t, Tensor))


INFERENCE = Law(
    name="inference",
    family="transforms",
    statement=r"F_{\text{no graph}}(x) = F(x)",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
)
