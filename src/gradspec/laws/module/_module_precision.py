r"""In float32 and bfloat16 the module evaluates in its own dtype, and keeps half of the digits.

Why it matters: networks are deployed in low precision; a constant in another dtype promotes everything after it, or
stops the call.

What breaks it: a tensor made without a dtype, a difference of large numbers, a sum in the dtype of the input.

Remedy: make tensors with the dtype of the input, and accumulate in float32.
"""

from __future__ import annotations

import torch

from gradspec.law import HOLDS, Finding, Law, ModuleTrial, broken, not_applicable
from gradspec.laws.module.support._build import evaluate, used
from gradspec.laws.tensor.support._call import differentiable
from gradspec.laws.tensor.support._compare import describe, of_right_numbers

DTYPES = (torch.float32, torch.bfloat16)


def _check(trial: ModuleTrial) -> Finding:
    values = [value for value in trial.case.inputs or () if differentiable(value)]
    if not values or any(value.dtype != torch.float64 for value in values):
        return not_applicable("no float64 input in this case, to be rounded")
    expected = evaluate(trial, used(trial))
    for dtype in DTYPES:
        got = evaluate(trial, used(trial).to(dtype), dtype)
        for name, right in expected.items():
            mine = got[name]
            if mine.dtype != dtype:
                return broken(
                    f"{name} has another dtype",
                    argument=name,
                    got=describe(mine),
                    expected=str(dtype),
                    likely=of_right_numbers(mine, right.to(dtype)),
                )
            error = ((mine.double() - right).norm() / right.norm().clamp_min(1e-300)).item()
            bound = torch.finfo(dtype).eps ** 0.5
            if not error <= bound:
                return broken(
                    f"{name} is off by more than half of the digits of {dtype}",
                    argument=name,
                    got=f"a relative error of {error:.2g}",
                    expected=f"at most {bound:.2g}",
                )
    return HOLDS


MODULE_PRECISION = Law(
    name="module_precision",
    family="modules",
    statement=r"\|F_{16}(x) - F_{64}(x)\| \le \sqrt{\varepsilon_{16}}\,\|F_{64}(x)\|",
    check=_check,
    doc=__doc__ or "",
    kinds=("module",),
    capability="precision",
)
