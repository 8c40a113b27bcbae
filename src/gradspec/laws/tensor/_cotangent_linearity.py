r"""Backward is linear in the cotangent.

Why it matters: the chain rule hands backward a sum of cotangents; a backward that is not linear gives a result that
depends on how the graph was cut.

What breaks it: clipping, rounding or normalising the cotangent inside backward.

Remedy: move the clipping into a hook or the optimizer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Status, Trial, not_applicable
from gradspec.laws.tensor.support._call import Inputs, like, outputs, vjp, whole
from gradspec.laws.tensor.support._compare import compare_all
from gradspec.laws.tensor.support._reference import on_spec_side
from gradspec.spec._gradient import gradient_of

_Cotangents = tuple[Tensor, ...]


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    y = outputs(on_spec_side("primal", trial.spec.primal, *inputs.args()))
    # Whole numbers: their combination is exact in the dtype of the output, which may be lower than the gradient's.
    v, w = (tuple(map(whole, like(y, trial.seed + k))) for k in (0, 1))
    finding = _judged(trial, inputs, trial.spec.function, v, w)
    if finding is not HOLDS and gradient_of(trial.spec.surrogate):
        declared = _judged(trial, inputs, trial.spec.surrogate, v, w)
        if declared.status is Status.BROKEN:
            return not_applicable("the gradient that the spec declares (gradient=) is not linear in the cotangent")
    return finding


def _judged(trial: Trial, inputs: Inputs, function: Callable[..., Any], v: _Cotangents, w: _Cotangents) -> Finding:
    both = vjp(function, inputs, tuple(2 * a - 300 * b for a, b in zip(v, w, strict=True)))
    of_v, of_w = vjp(function, inputs, v), vjp(function, inputs, w)
    expected = {name: None if a is None or (b := of_w[name]) is None else 2 * a - 300 * b for name, a in of_v.items()}
    for name, b in both.items():
        a, theirs = of_v[name], expected[name]
        if a is not None and b is not None and theirs is not None:  # where all are infinite, nothing compares
            expected[name] = theirs.where(~(a.isinf() & b.isinf() & theirs.isnan()), b)
    return compare_all(trial, "gradient of the combined cotangent", both, expected, times=302).because(None)


COTANGENT_LINEARITY = Law(
    name="cotangent_linearity",
    family="derivative",
    statement=r"B(a\,v + b\,w) = a\,B(v) + b\,B(w)",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
)
