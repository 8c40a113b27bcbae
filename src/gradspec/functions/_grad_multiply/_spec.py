"""The spec of GradMultiply."""

from __future__ import annotations

from gradspec.functions._coefficient import bytes_of_coefficient
from gradspec.functions._grad_multiply._function import GradMultiply, grad_multiply
from gradspec.functions._gradient_scaling import _cases
from gradspec.functions._gradient_scaling._differences import differences
from gradspec.spec import Difference, Formula, FunctionSpec, Saved, Supports

GRAD_MULTIPLY = FunctionSpec(
    name="grad_multiply",
    function=GradMultiply.apply,
    primal=lambda x, scale: x,
    surrogate=lambda x, scale: scale * x,
    wrt=("x",),
    cases=_cases.cases,
    raises=_cases.misuses,
    arguments=_cases.arguments("scale"),
    documented=(GradMultiply, grad_multiply),
    effects=_cases.EFFECTS,
    saved=Saved(
        text="a factor that is a tensor of another dtype, in that of `x`",
        bytes=lambda x, scale: bytes_of_coefficient(scale, x),
    ),
    placements=_cases.placements("scale"),
    formula=Formula(primal="x", surrogate="scale * x"),
    references=(_cases.GRADIENT_MULTIPLIER, _cases.REVERSAL),
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
    supports=Supports.all(),
)
