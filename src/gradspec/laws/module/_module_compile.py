r"""`torch.compile(fullgraph=True)` gives the outputs, the gradients and the state of the plain module.

It uses the mode of the case: evaluation, or training from the same seed.

Why it matters: a compiled model with another gradient silently learns something else.

What breaks it: a decision that reads a tensor (`.item()`), a custom gradient that the compiler does not see.

Remedy: keep decisions to shapes and flags, and let the functions of the module promise `compile`.
"""

from __future__ import annotations

import torch

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, ModuleTrial, Rank, not_applicable, raised
from gradspec.laws.module.support._build import beside_evaluation, build, forward_backward
from gradspec.laws.tensor.support._compare import compare_all
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._transform import BREAKS, silenced


def _check(trial: ModuleTrial) -> Finding:
    if trial.case.inputs is None:
        return not_applicable("the case makes no call")
    try:
        return _compiled(trial, fullgraph=True)
    except Exception as error:
        with silenced("torch._dynamo"):
            is_right = quietly(lambda: _compiled(trial, fullgraph=False)) is HOLDS
        if not is_right:
            raise
        return raised(error, BREAKS, rank=Rank.WASTE)


def _compiled(trial: ModuleTrial, *, fullgraph: bool) -> Finding:
    plain, module = (build(trial, training=trial.case.training) for _ in range(2))
    backend = trial.profile.backend
    torch._dynamo.reset()
    # The plain random numbers, so that noise can be compared: inductor draws its own otherwise.
    with torch._inductor.config.patch(fallback_random=True):
        compiled = torch.compile(module, fullgraph=fullgraph, backend=backend)
        got = forward_backward(trial, module, compiled)
    expected = forward_backward(trial, plain)
    finding = compare_all(trial, f"torch.compile ({backend}):", got, expected)
    if finding is not HOLDS:
        return finding if trial.case.training else beside_evaluation(trial, plain, finding)
    states = module.state_dict(), plain.state_dict()
    return compare_all(trial, f"torch.compile ({backend}): state", *states, is_derivative=False)


MODULE_COMPILE = Law(
    name="module_compile",
    family="modules",
    scope=Scope.COMPILE,
    statement=r"\operatorname{compile}(F) = F",
    check=_check,
    doc=__doc__ or "",
    kinds=("module",),
    cost="compile",
    capability="compile",
)
