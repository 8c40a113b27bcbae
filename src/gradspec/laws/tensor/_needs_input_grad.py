r"""A gradient that nobody asked for is not computed, and one that is asked for is.

Why it matters: a wasted matrix product in every step, or a gradient that is lost when another input is frozen.

What breaks it: a backward that ignores `ctx.needs_input_grad`, or mixes up its positions.

Remedy: return None where `ctx.needs_input_grad` is false.
"""

from __future__ import annotations

from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Trial, broken, not_applicable
from gradspec.laws.tensor.support._call import Inputs, outputs, spying, vjp
from gradspec.laws.tensor.support._compare import compare_all, describe
from gradspec.laws.tensor.support._reference import reference


def _check(trial: Trial) -> Finding:
    cls, inputs = trial.spec.autograd_function, Inputs.of(trial)
    if cls is None:
        return not_applicable("the spec names no implementation to look into")
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    names = list(inputs.values)
    for name in inputs.wrt:
        alone = Inputs(inputs.values, (name,))
        with spying(cls, "backward") as calls:
            got = vjp(trial.spec.function, alone, seed=trial.seed)
        finding = compare_all(
            trial, "gradient (alone required)", got, vjp(reference(trial.spec), alone, seed=trial.seed)
        )
        if finding is not HOLDS:
            return finding
        for _, returned in calls:
            for other, raw in zip(names, returned, strict=False):
                if other != name and isinstance(raw, Tensor):
                    return broken(
                        f"backward computes a gradient for `{other}`, which nobody asked for",
                        argument=f"what backward returns for `{other}`",
                        got=describe(raw),
                        expected="None",
                        likely="backward ignores ctx.needs_input_grad",
                    )
    y = outputs(trial.spec.function(*inputs.args()))
    if any(isinstance(t, Tensor) and t.requires_grad for t in y):
        return broken("the output requires grad though no input does")
    return HOLDS


NEEDS_INPUT_GRAD = Law(
    name="needs_input_grad",
    family="protocol",
    statement=r"\bar{x}_i = \varnothing \iff x_i \text{ needs no gradient}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
    specimens=(
        "gradient_nobody_needs",
        "mixes_up_who_needs_a_gradient",
        "always_requires_grad",
    ),
)
