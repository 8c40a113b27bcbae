r"""The formula on the page is the mathematics that the code computes.

Why it matters: a page is rendered from the sympy formula of the spec; readers believe it.

What breaks it: a formula that was typed once and not changed with the code.

Remedy: write in `FunctionSpec.formula` what `primal` and `surrogate` compute, or leave it out: the page then says
`not checked`.
"""

from __future__ import annotations

import numpy
import torch

from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable
from gradspec.laws.tensor.support._call import Inputs, differentiable
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._reference import on_spec_side
from gradspec.spec._formula_tex import sympy_formula


def _check(trial: Trial) -> Finding:
    import sympy

    spec = trial.spec
    if spec.formula is None:
        return not_applicable("the spec has no formula, and the page says `not checked`")
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    args = [_double(value) for value in inputs.values.values()]
    primal, surrogate, symbols = sympy_formula(spec)
    for role, formula, function in (("primal", primal, spec.primal), ("surrogate", surrogate, spec.surrogate)):
        expected = on_spec_side(role, function, *args)
        numeric = sympy.lambdify(list(symbols.values()), formula, modules="numpy")
        value = numpy.asarray(numeric(*(a.cpu().numpy() if isinstance(a, torch.Tensor) else a for a in args)))
        got = torch.from_numpy(numpy.broadcast_to(value, expected.shape).copy()).to(expected.device, expected.dtype)
        said = f"the formula `{formula}` does not compute the {role}"
        finding = compare(trial, f"formula of the {role}", got, expected, said=said)
        if finding is not HOLDS:
            return finding
    return HOLDS


def _double(value: object) -> object:
    if not isinstance(value, torch.Tensor) or not differentiable(value):
        return value
    return value.to(torch.complex128 if value.is_complex() else torch.float64)


FORMULA = Law(
    name="formula",
    family="values",
    statement=r"p(x) = \text{formula}_p(x), \quad s(x) = \text{formula}_s(x)",
    check=_check,
    doc=__doc__ or "",
    needs_spec=True,
)
