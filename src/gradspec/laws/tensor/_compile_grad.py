r"""`torch.compile` of a function that calls `torch.func.grad` gives the declared gradient.

Why it matters: torch up to 2.14 traces through a custom Function there and differentiates its forward: the declared
gradient is gone, silently.

What breaks it: any Function that is not allowed in the graph.

Remedy: allow the class in the graph (`torch.compiler.allow_in_graph`), and define `jvp` beside `backward`.
"""

from __future__ import annotations

import torch

from gradspec._scope import Scope
from gradspec.law import Finding, Law, Trial, not_applicable
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._transform import expected_gradients, frozen, judge, weighted, weights


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    v = weights(trial, inputs)
    gradient = torch.func.grad(weighted(frozen(trial.spec.function, inputs), v), argnums=tuple(range(len(inputs.wrt))))
    torch._dynamo.reset()
    got = torch.compile(gradient, fullgraph=True, backend=trial.profile.backend)(*inputs.tensors())
    return judge(trial, inputs, "torch.compile of torch.func.grad", got, expected_gradients(trial, inputs, v))


COMPILE_GRAD = Law(
    name="compile_grad",
    family="transforms",
    scope=Scope.COMPILE,
    statement=r"\operatorname{compile}(\operatorname{grad}(F)) = \operatorname{grad}(r)",
    check=_check,
    doc=__doc__ or "",
    cost="compile",
    requires=("primal", "vjp"),
    capability="compile_grad",
)
