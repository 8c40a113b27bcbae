"""The spec of ShakeShake, whose noise is given; a few laws hold the form that draws."""

from __future__ import annotations

from gradspec.functions._coefficient import bytes_of_coefficient
from gradspec.functions._shake_shake import _cases
from gradspec.functions._shake_shake._differences import DIFFERENCES
from gradspec.functions._shake_shake._function import ShakeShake, mix_branches, shake_shake
from gradspec.spec import Formula, FunctionSpec, Noise, Placements, Saved, Supports

SHAKE_SHAKE = FunctionSpec(
    name="shake_shake",
    function=mix_branches,
    primal=lambda x1, x2, alpha, beta: alpha * x1 + (1 - alpha) * x2,
    surrogate=lambda x1, x2, alpha, beta: beta * x1 + (1 - beta) * x2,
    wrt=("x1", "x2"),
    cases=_cases.cases,
    raises=_cases.misuses,
    arguments=_cases.ARGUMENTS,
    implementation=ShakeShake,
    documented=(ShakeShake, shake_shake, mix_branches),
    formula=Formula(primal="alpha*x1 + (1 - alpha)*x2", surrogate="beta*x1 + (1 - beta)*x2"),
    references=(_cases.SHAKE_SHAKE_2017,),
    differences=DIFFERENCES,
    saved=Saved(
        text="a `beta` that is drawn, or a tensor of another dtype, in that of `x1`",
        bytes=lambda x1, x2, alpha, beta: bytes_of_coefficient(beta, x1),
    ),
    placements=tuple(
        Placements(arguments={"x1": place, "x2": place, "alpha": weight, "beta": weight}, output=place)
        for place, weight in (
            ("shard(0)", "replicate"),
            ("shard(0)", "shard(0)"),
            ("shard(1)", "replicate"),
            ("replicate", "replicate"),
        )
    ),
    noise=Noise(
        names=("alpha", "beta"),
        drawing=ShakeShake.apply,
        law="uniform on [0, 1), one number a sample, independent",
        cdf=lambda number: number.clamp(0, 1),
        probe=_cases.probe,
        recover=_cases.recover,
        evaluation=lambda x1, x2: ShakeShake.apply(x1, x2, False),
        at_rest={"alpha": 0.5, "beta": 0.5},
    ),
    supports=Supports.all(),
)
