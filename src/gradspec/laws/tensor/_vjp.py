r"""Backward applies the transposed derivative of the surrogate.

Why it matters: this is the declared gradient; where it is deliberately not the derivative of forward, gradcheck
cannot judge it.

What breaks it: a factor forgotten, a flipped sign, an operand transposed, a relative error of 1e-6 in one element.

Remedy: write backward for the surrogate: what it returns for `x` is the cotangent times the derivative of the
surrogate.
"""

from __future__ import annotations

from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable
from gradspec.laws.tensor._call import Inputs, cotangents, outputs, vjp
from gradspec.laws.tensor._compare import compare_all
from gradspec.laws.tensor._reference import on_spec_side, reference


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    y = outputs(on_spec_side("primal", trial.spec.primal, *inputs.args()))
    for name, v in cotangents(trial, y):
        expected = vjp(reference(trial.spec), inputs, v)  # first: the function may change v
        got = vjp(trial.spec.function, inputs, v)
        finding = compare_all(trial, f"gradient ({name} cotangent)", got, expected)
        if finding is not HOLDS:
            return finding
    return HOLDS


VJP = Law(
    name="vjp",
    family="derivative",
    statement=r"\bar{x} = Ds(x)^{\top}\,\bar{y}",
    check=_check,
    doc=__doc__ or "",
    needs_spec=True,
    requires=("primal",),
    specimens=("factor_forgotten", "sign_flipped", "off_by_a_millionth", "tuple_argument"),
)
