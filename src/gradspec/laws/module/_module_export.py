r"""`torch.export.export(...).module()` of a module in evaluation gives the outputs and gradients of the module.

Why it matters: the exported program is the one that is deployed.

What breaks it: a decision that reads a tensor, a custom gradient that the exported operations do not have.

Remedy: keep decisions to shapes and flags, and let the functions of the module promise `export`.
"""

from __future__ import annotations

from gradspec._scope import Scope
from gradspec.law import Finding, Law, ModuleTrial, not_applicable
from gradspec.laws.module.support._build import beside_evaluation, forward_backward, inputs, used
from gradspec.laws.tensor.support._compare import compare_all
from gradspec.laws.tensor.support._transform import exported


def _check(trial: ModuleTrial) -> Finding:
    if trial.case.inputs is None:
        return not_applicable("the case makes no call")
    module = used(trial)
    program = exported(module, inputs(trial))
    expected = forward_backward(trial, module)
    got = forward_backward(trial, program)
    return beside_evaluation(trial, module, compare_all(trial, "torch.export:", got, expected))


MODULE_EXPORT = Law(
    name="module_export",
    family="modules",
    scope=Scope.EXPORT,
    statement=r"\operatorname{export}(F) = F",
    check=_check,
    doc=__doc__ or "",
    kinds=("module",),
    cost="compile",
    capability="export",
)
