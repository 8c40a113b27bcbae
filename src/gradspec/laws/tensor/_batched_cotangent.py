r"""A batch of cotangents in one backward pass gives the same gradients as separate passes.

Why it matters: `torch.autograd.functional.jacobian(vectorize=True)` and per-sample penalties use
`torch.autograd.grad(..., is_grads_batched=True)`; a backward that bypasses autograd may crash the interpreter there.

What breaks it: `.data`, `data_ptr()` or numpy on the cotangent, which has no memory of its own inside the batch. An
operation on `.data` reads memory that is not there: the interpreter dies, or raises something, or goes on with any
numbers. The law stops it before, and names it; for what else may happen it runs in a child process.

Remedy: use torch operations on the cotangent.
"""

from __future__ import annotations

import torch

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, Trial, broken, not_applicable
from gradspec.laws.tensor.support._call import Inputs, gradients, like, outputs, vjp
from gradspec.laws.tensor.support._compare import compare_all
from gradspec.laws.tensor.support._no_memory import NoMemoryError, without_data
from gradspec.laws.tensor.support._reference import plain_call

BATCH = 3


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    leaves = inputs.leaves()
    y = outputs(trial.spec.function(*inputs.args(leaves)))
    rows = [like(y, trial.seed + k) for k in range(BATCH)]
    batch = tuple(torch.stack(column) for column in zip(*rows, strict=True))
    try:
        with without_data():
            got = gradients(y, leaves, batch, is_grads_batched=True)
    except NoMemoryError as error:
        return broken(
            "backward reads `.data` of a batched cotangent, which has no memory",
            likely="`.data` in backward: use the cotangent itself",
            details={"operation": error.operation, "line": error.line},
        )
    for k, v in enumerate(rows):
        row = {name: None if gradient is None else gradient[k] for name, gradient in got.items()}
        expected = vjp(plain_call(trial.spec, inputs), inputs, v)
        finding = compare_all(trial, f"gradient {k} of a batch of cotangents", row, expected)
        if finding is not HOLDS:
            return finding
    return HOLDS


BATCHED_COTANGENT = Law(
    name="batched_cotangent",
    family="transforms",
    scope=Scope.FUNC,
    statement=r"B(V)_i = B(V_i)",
    check=_check,
    doc=__doc__ or "",
    cost="process",
    # A batch of cotangents is vmap within backward: where that is not promised, in-place writes are ordinary code.
    refusable_without="vmap",
    requires=("primal", "vjp"),
)
