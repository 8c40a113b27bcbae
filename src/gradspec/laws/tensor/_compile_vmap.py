r"""`torch.compile` of a function that calls `torch.vmap` gives each sample its value and its declared gradient.

Why it matters: per-sample gradients and ensembles are compiled for speed, and there torch up to 2.14 differentiates the
forward of a Function that it traces into: the declared gradient is gone, silently.

What breaks it: any Function that is not allowed in the graph; one without a rule for vmap.

Remedy: allow the class in the graph (`torch.compiler.allow_in_graph`), and set `generate_vmap_rule = True`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable
from gradspec.laws.tensor.support._call import Inputs, outputs, resembling
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._reference import is_asked, reference
from gradspec.laws.tensor.support._transform import (
    expected_gradients,
    frozen,
    judge,
    tracing_backend,
    weighted,
    weights,
)

WAY = "torch.compile of torch.vmap"


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    v = weights(trial, inputs)
    function = frozen(trial.spec.function, inputs)
    loss = weighted(function, v)
    places = tuple(range(len(inputs.wrt)))

    def one(*tensors: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        gradients = torch.func.grad(loss, argnums=places)(*tensors) if is_asked(trial.spec, "func_grad") else ()
        return outputs(function(*tensors)), gradients

    elements = (inputs.tensors(), resembling(inputs.tensors(), trial.seed + 1))
    torch._dynamo.reset()
    compiled = torch.compile(torch.vmap(one), fullgraph=True, backend=tracing_backend(trial))
    values, got = compiled(*(torch.stack(column) for column in zip(*elements, strict=True)))
    for k, element in enumerate(elements):
        row = Inputs({**inputs.values, **dict(zip(inputs.wrt, element, strict=True))}, inputs.wrt)
        right = outputs(frozen(reference(trial.spec), row)(*element))
        for value, expected in zip(values, right, strict=True):
            if (finding := compare(trial, f"value {k} under {WAY}", value[k], expected)) is not HOLDS:
                return finding
        if got:
            mine = tuple(g[k] for g in got)
            if (finding := judge(trial, row, WAY, mine, expected_gradients(trial, row, v))) is not HOLDS:
                return finding
    return HOLDS


COMPILE_VMAP = Law(
    name="compile_vmap",
    family="transforms",
    scope=Scope.COMPILE,
    statement=r"\operatorname{compile}(\operatorname{vmap}(\operatorname{grad}(F))) = "
    r"\operatorname{vmap}(\operatorname{grad}(r))",
    check=_check,
    doc=__doc__ or "",
    cost="compile",
    requires=("primal", "vjp"),
    capability="compile_vmap",
)
