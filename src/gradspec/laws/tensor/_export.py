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
from unittest.mock import patch

import torch
from torch import Tensor

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._graph import classes_behind
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


def has_branch_for_export(trial: Trial) -> bool:
    """Whether a function leaves its autograd Function out while it is exported, as the remedy says."""
    inputs = Inputs.of(trial)

    def classes() -> list[type]:
        return classes_behind(trial.spec.function(*inputs.args(inputs.leaves())))

    with patch.object(torch.compiler, "_is_exporting_flag", True):
        exported_with = classes()
    return bool(classes()) and not exported_with


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
