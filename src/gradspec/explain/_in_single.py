"""Which line of a function loses what its results lack in a half type, beside the reference of its spec."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from gradspec.law import Reason, Trial
from gradspec.laws.tensor.support._call import Inputs, cotangents, differentiable, outputs, vjp
from gradspec.laws.tensor.support._differences import double, in_double
from gradspec.laws.tensor.support._farther import TIMES
from gradspec.laws.tensor.support._reference import on_spec_side, reference
from gradspec.laws.tensor.support._rounded_line import rounded_line, share
from gradspec.laws.tensor.support._wide_memory import HALF


def why_in_a_half_type(trial: Trial, inputs: Inputs, *, of_values: bool) -> Reason | None:
    """Return which line by itself takes a value or a gradient as far off as it is, where float32 would not."""
    dtypes = {inputs.values[name].dtype for name in inputs.wrt}
    if len(dtypes) != 1 or not dtypes <= set(HALF):
        return None
    (dtype,) = dtypes
    called = trial.spec.function
    v = next(drawn for _, drawn in cotangents(trial, outputs(called(*inputs.args()))))

    def compute(function: Callable[..., Any], at: Inputs, of: torch.dtype) -> dict[str, Any]:
        if of_values:
            found = outputs(function(*at.args()))
            return {"the value" if len(found) == 1 else f"output {k}": t for k, t in enumerate(found)}
        w = tuple(t.to(of) if differentiable(t) else t for t in v)
        return {f"the gradient of `{name}`": t for name, t in vjp(function, at, w).items()}

    stated = partial(on_spec_side, "primal", trial.spec.primal) if of_values else reference(trial.spec)
    wide = compute(stated, in_double(inputs), torch.float64)
    for name, got in compute(called, inputs, dtype).items():
        exact = wide[name]
        if not isinstance(got, Tensor) or not isinstance(exact, Tensor) or not exact.any() or got.dtype not in HALF:
            continue

        def again(name: str = name) -> Any:
            return compute(called, inputs, dtype)[name]

        if (found := rounded_line(again, exact, share(got, exact), TIMES)) is not None:
            return found.reason(str(dtype).removeprefix("torch."), name)
    return None


def is_nearer_in_double(trial: Trial, inputs: Inputs) -> bool:
    """Whether each gradient of a call in a half type is off by far less in float64."""
    v = next(drawn for _, drawn in cotangents(trial, outputs(trial.spec.function(*inputs.args()))))
    wide, w = in_double(inputs), tuple(map(double, v))
    exact = vjp(reference(trial.spec), wide, w)
    narrow, close = vjp(trial.spec.function, inputs, v), vjp(trial.spec.function, wide, w)
    pairs = [(narrow[n], close[n], right) for n, right in exact.items() if right is not None and right.any()]
    found = [(far, near, right) for far, near, right in pairs if far is not None and near is not None]
    return len(found) == len(pairs) and all(share(n, right) * TIMES < share(far, right) for far, n, right in found)
