r"""`torch.compile(fullgraph=True)` gives the same value and the declared gradient.

Why it matters: a compiled model that trains on another gradient trains to something else, without an error.

What breaks it: a Function that defines `jvp` and is not allowed in the graph; data-dependent Python in forward.

Remedy: allow the class in the graph (`torch.compiler.allow_in_graph`).
"""

from __future__ import annotations

import torch

from gradspec.law import Finding, Law, Trial, not_applicable
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._transform import frozen, judge_run


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    torch._dynamo.reset()
    compiled = torch.compile(frozen(trial.spec.function, inputs), fullgraph=True, backend=trial.profile.backend)
    return judge_run(trial, inputs, f"torch.compile ({trial.profile.backend})", compiled)


COMPILE = Law(
    name="compile",
    family="transforms",
    statement=r"\operatorname{compile}(F) = r",
    check=_check,
    doc=__doc__ or "",
    cost="compile",
    requires=("primal", "vjp"),
    capability="compile",
    specimens=(
        "jvp_not_allowed_in_graph",
        "another_value_under_compile",
    ),
)
