r"""The function accepts its documented arguments by keyword, and so does the form that draws its noise.

Why it matters: a call with keywords is how readable code calls it; older torch refused keywords in `apply`.

What breaks it: an `apply` that forwards positional arguments alone, or an argument name that the page does not
have.

Remedy: give `apply` the documented argument names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradspec.law import HOLDS, Finding, Law, Trial, raised
from gradspec.laws.tensor.support._call import Inputs, outputs
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._generators import has_batch, without_noise
from gradspec.laws.tensor.support._reference import on_spec_side


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    expected = outputs(on_spec_side("primal", trial.spec.primal, *inputs.args()))
    got = _called(trial.spec.function, inputs, "it")
    if isinstance(got, Finding):
        return got
    for mine, theirs in zip(got, expected, strict=True):
        if (finding := compare(trial, "value of the keyword call", mine, theirs)) is not HOLDS:
            return finding
    if trial.spec.noise is None or not has_batch(without_noise(trial)):
        return HOLDS
    drawn = _called(trial.spec.noise.drawing, without_noise(trial), "the form that draws")
    return drawn if isinstance(drawn, Finding) else HOLDS


def _called(function: Callable[..., Any], inputs: Inputs, form: str) -> tuple[Any, ...] | Finding:
    keywords = dict(zip(inputs.values, inputs.args(), strict=True))
    try:
        return outputs(function(**keywords))
    except TypeError as error:
        names = ", ".join(f"{name}=..." for name in keywords)
        return raised(error, f"called with {names} {form}")


KEYWORD_CALL = Law(
    name="keyword_call",
    family="protocol",
    statement=r"F(x{=}x, \dots) = F(x, \dots)",
    check=_check,
    doc=__doc__ or "",
    needs_spec=True,
    requires=("primal",),
    specimens=(
        "positional_only",
        "draws_by_position_only",
        "takes_a_keyword_for_another",
    ),
)
