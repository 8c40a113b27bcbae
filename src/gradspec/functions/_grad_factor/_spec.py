"""The spec of GradFactor."""

from __future__ import annotations

from gradspec.functions._coefficient import bytes_of_coefficient
from gradspec.functions._grad_factor._function import GradFactor, grad_factor
from gradspec.functions._gradient_scaling import _cases
from gradspec.functions._gradient_scaling._differences import differences
from gradspec.spec import Formula, FunctionSpec, Saved, Supports

GRAD_FACTOR = FunctionSpec(
    name="grad_factor",
    function=GradFactor.apply,
    primal=lambda x, f: x,
    surrogate=lambda x, f: f * x,
    wrt=("x",),
    cases=_cases.cases,
    raises=_cases.misuses,
    arguments=_cases.arguments("f"),
    documented=(GradFactor, grad_factor),
    effects=_cases.EFFECTS,
    saved=Saved(
        text="a factor that is a tensor of another dtype, in that of `x`",
        bytes=lambda x, f: bytes_of_coefficient(f, x),
    ),
    placements=_cases.placements("f"),
    formula=Formula(primal="x", surrogate="f * x"),
    references=(_cases.DIFFLOGIC, _cases.REVERSAL),
    differences=differences("torchlogix.functional.GradFactor", "f"),
    supports=Supports.all(),
)
