r"""`torch.func.functional_call` in evaluation has the gradients of `backward`, one for each row under `vmap`.

Why it matters: per-sample gradients, influence functions and meta-learning call a module this way.

What breaks it: parameters read from elsewhere than the module, a Function without a rule for `vmap`.

Remedy: read parameters as attributes of the module, and let its functions promise `func_grad` and `vmap`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, ModuleTrial, not_applicable
from gradspec.laws.module.support._build import batch, inputs, rows, tensors, used
from gradspec.laws.tensor.support._call import like
from gradspec.laws.tensor.support._compare import compare_all


def _check(trial: ModuleTrial) -> Finding:
    if trial.case.output is None:
        return not_applicable("the case declares no output of a row for each input")
    module = used(trial)
    parameters = {name: p.detach() for name, p in module.named_parameters()}
    if not parameters:
        return not_applicable("the module has no parameter")
    rest = {name: t.detach() for name, t in tensors(module).items() if name not in parameters}
    given = tuple(v.detach() if isinstance(v, Tensor) else v for v in inputs(trial))
    (weights,) = like((module(*given).detach(),), trial.seed)

    def loss(theta: dict[str, Tensor], *row: Any) -> Tensor:
        *values, weight = row
        y: Tensor = torch.func.functional_call(module, {**theta, **rest}, tuple(_batched(v) for v in values))
        total: Tensor = (weight * y.squeeze(0)).sum()
        return total

    places = tuple(0 if isinstance(value, Tensor) and value.ndim else None for value in given)
    by_row = torch.vmap(torch.func.grad(loss), in_dims=(None, *places, 0))(parameters, *given, weights)
    for row in range(batch(given)):
        one = slice(row, row + 1)
        y = (weights[one] * module(*rows(given, one))).sum()
        expected = dict(
            zip(parameters, torch.autograd.grad(y, list(module.parameters()), allow_unused=True), strict=True)
        )
        got = {name: gradient[row] for name, gradient in by_row.items()}
        finding = compare_all(trial, f"gradient of row {row} by torch.vmap", got, expected)
        if finding is not HOLDS:
            return finding
    return HOLDS


def _batched(value: Any) -> Any:
    return value.unsqueeze(0) if isinstance(value, Tensor) else value


FUNCTIONAL_CALL = Law(
    name="functional_call",
    family="modules",
    scope=Scope.FUNC,
    statement=r"\operatorname{vmap}(\operatorname{grad}(F_\theta))_i = \nabla_\theta F_\theta(x_i)",
    check=_check,
    doc=__doc__ or "",
    kinds=("module",),
    requires=("batch_size",),
    capability="functional",
)
