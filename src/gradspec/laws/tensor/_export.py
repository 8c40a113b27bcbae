r"""`torch.export.export(...).module()`, strict and not, gives the same value and the declared gradient.

Why it matters: an exported program is trained elsewhere; torch.export keeps the operations of forward and forgets
the Function.

What breaks it: any autograd Function: strict export loses the graph, the other one the custom backward.

Remedy: while `torch.compiler.is_exporting()`, compute `p.detach() + (s - s.detach())` from the primal and the
surrogate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._reference import is_stand_in
from gradspec.laws.tensor.support._transform import exported, frozen, judge_run


class _Exported(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: Tensor) -> Any:
        return self.function(*tensors)


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    refusal = None
    for strict in (True, False):
        try:
            finding = _exported_as(trial, inputs, strict=strict)
        except Exception as error:
            if not is_stand_in(trial.spec.primal):
                raise
            refusal = refusal or error  # in an audit a refusal breaks no promise, and hides no silent result
            continue
        if finding is not HOLDS:
            return finding
    if refusal is not None:
        raise refusal
    return HOLDS


def _exported_as(trial: Trial, inputs: Inputs, *, strict: bool) -> Finding:
    module = _Exported(frozen(trial.spec.function, inputs))
    program = exported(module, tuple(inputs.leaves().values()), strict=strict)
    return judge_run(trial, inputs, f"torch.export(strict={strict})", program)


EXPORT = Law(
    name="export",
    family="transforms",
    scope=Scope.EXPORT,
    statement=r"\operatorname{export}(F) = r",
    check=_check,
    doc=__doc__ or "",
    cost="compile",
    requires=("primal", "vjp"),
    capability="export",
)
