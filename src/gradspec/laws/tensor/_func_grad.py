r"""`torch.func.grad` gives the declared gradient.

Why it matters: functional training loops, per-sample gradients and meta-learning use it.

What breaks it: a Function whose forward takes ctx: torch.func refuses it.

Remedy: write `setup_context` beside a forward without ctx.
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
    loss = weighted(frozen(trial.spec.function, inputs), v)
    got = torch.func.grad(loss, argnums=tuple(range(len(inputs.wrt))))(*inputs.tensors())
    return judge(trial, inputs, "torch.func.grad", got, expected_gradients(trial, inputs, v))


FUNC_GRAD = Law(
    name="func_grad",
    family="transforms",
    scope=Scope.FUNC,
    statement=r"\operatorname{grad}(F) = \operatorname{grad}(r)",
    check=_check,
    doc=__doc__ or "",
    requires=("primal", "vjp"),
    capability="func_grad",
)
