r"""The function accepts its documented arguments by keyword.

Why it matters: a call with keywords is how readable code calls it; older torch refused keywords in `apply`.

What breaks it: an `apply` that forwards positional arguments alone, or an argument name that the page does not
have.

Remedy: give `apply` the documented argument names.
"""

from __future__ import annotations

from gradspec.law import HOLDS, Finding, Law, Trial, raised
from gradspec.laws.tensor._call import Inputs, outputs
from gradspec.laws.tensor._compare import compare
from gradspec.laws.tensor._reference import on_spec_side


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    expected = outputs(on_spec_side("primal", trial.spec.primal, *inputs.args()))
    keywords = dict(zip(inputs.values, inputs.args(), strict=True))
    try:
        got = outputs(trial.spec.function(**keywords))
    except TypeError as error:
        names = ", ".join(f"{name}=..." for name in keywords)
        return raised(error, f"called with {names} it")
    for mine, theirs in zip(got, expected, strict=True):
        if (finding := compare(trial, "value of the keyword call", mine, theirs)) is not HOLDS:
            return finding
    return HOLDS


KEYWORD_CALL = Law(
    name="keyword_call",
    family="protocol",
    statement=r"F(x{=}x, \dots) = F(x, \dots)",
    check=_check,
    doc=__doc__ or "",
    needs_spec=True,
    requires=("primal",),
    specimens=("positional_only",),
)
