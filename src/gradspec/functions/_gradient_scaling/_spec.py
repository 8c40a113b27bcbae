"""The specs of GradFactor and GradMultiply."""

from __future__ import annotations

from gradspec.functions._gradient_scaling import _cases as promise
from gradspec.functions._gradient_scaling._differences import differences
from gradspec.functions._gradient_scaling._grad_factor import GradFactor, grad_factor
from gradspec.functions._gradient_scaling._grad_multiply import GradMultiply, grad_multiply
from gradspec.spec import Difference, Formula, FunctionSpec

GRAD_FACTOR = FunctionSpec(
    name="grad_factor",
    function=GradFactor.apply,
    primal=lambda x, f: x,
    surrogate=lambda x, f: f * x,
    wrt=("x",),
    cases=promise.cases,
    raises=promise.misuses,
    summary="Returns its input unchanged, and multiplies the gradient that flows back through it by a factor.",
    arguments=promise.arguments("f"),
    documents=(GradFactor, grad_factor),
    effects=promise.EFFECTS,
    formula=Formula(primal="x", surrogate="f * x"),
    references=(promise.DIFFLOGIC, promise.REVERSAL),
    differences=differences("torchlogix.functional.GradFactor", "f"),
)

GRAD_MULTIPLY = FunctionSpec(
    name="grad_multiply",
    function=GradMultiply.apply,
    primal=lambda x, scale: x,
    surrogate=lambda x, scale: scale * x,
    wrt=("x",),
    cases=promise.cases,
    raises=promise.misuses,
    summary="Returns its input unchanged, and multiplies the gradient that flows back through it by a scale.",
    arguments=promise.arguments("scale"),
    documents=(GradMultiply, grad_multiply),
    effects=promise.EFFECTS,
    formula=Formula(primal="x", surrogate="scale * x"),
    references=(promise.GRADIENT_MULTIPLIER, promise.REVERSAL),
    differences=(
        *differences("espnet2.asr.encoder.avhubert_encoder.GradMultiply", "scale"),
        Difference(
            peer="espnet2.asr.encoder.beats_encoder.GradMultiply",
            published="Called with a tuple, `apply((x, scale))`, as its encoder does, it cuts the graph: no gradient.",
            ours="A tuple is refused with an error that says what to write.",
            law="vjp",
            case="factor 0.1",
        ),
    ),
)
