r"""`torch.compile` of a function that calls `torch.func.jvp` gives the declared derivative.

Why it matters: Hessian-vector products and forward-mode solvers are compiled for speed.

What breaks it: a Function that defines `jvp` and is not allowed in the graph.

Remedy: allow the class in the graph (`torch.compiler.allow_in_graph`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable
from gradspec.laws.tensor.support._call import Inputs, like, outputs, pushforward
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._reference import reference
from gradspec.laws.tensor.support._transform import DROPPED, frozen, tracing_backend


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    x = inputs.tensors()
    u = like(x, trial.seed)
    function = frozen(trial.spec.function, inputs)

    def along(x: tuple[Tensor, ...], u: tuple[Tensor, ...]) -> Any:
        return torch.func.jvp(function, x, u)

    torch._dynamo.reset()
    y, y_dot = torch.compile(along, fullgraph=True, backend=tracing_backend(trial))(x, u)
    expected = pushforward(inputs.closed(reference(trial.spec)), x, u)
    for what, got, right in zip(("value", "tangent of the output"), (y, y_dot), expected, strict=True):
        for mine, theirs in zip(outputs(got), right, strict=True):
            finding = compare(trial, f"{what} under torch.compile of torch.func.jvp", mine, theirs)
            if finding is not HOLDS:
                plain = pushforward(inputs.closed(trial.spec.primal), x, u)[1]
                dropped = all(torch.allclose(a, b) for a, b in zip(outputs(y_dot), plain, strict=True))
                return replace(finding, likely=DROPPED) if dropped else finding
    return HOLDS


COMPILE_JVP = Law(
    name="compile_jvp",
    family="transforms",
    statement=r"\operatorname{compile}(\operatorname{jvp}(F)) = \operatorname{jvp}(r)",
    check=_check,
    doc=__doc__ or "",
    cost="compile",
    requires=("primal", "vjp"),
    capability="compile_jvp",
    specimens=("jvp_not_allowed_in_graph",),
)
