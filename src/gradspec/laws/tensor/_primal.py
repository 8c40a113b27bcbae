r"""Forward computes the primal.

Why it matters: the other laws are about the derivative of a map; this one checks that the map is the right one.

What breaks it: a wrong branch, a wrong reduction, a result in another dtype.

Remedy: change forward, or, if forward is right, the primal of the spec.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Rank, Status, Trial, broken, shown
from gradspec.laws.tensor.support._call import Inputs, outputs
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._differences import in_double
from gradspec.laws.tensor.support._edge import why_empty
from gradspec.laws.tensor.support._farther import Three, than_the_reference
from gradspec.laws.tensor.support._limits import value_limits
from gradspec.laws.tensor.support._reference import on_spec_side
from gradspec.laws.tensor.support._replay import draws_against_function


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    right = on_spec_side("primal", trial.spec.primal, *inputs.args())
    expected = outputs(right)
    try:
        given = trial.spec.function(*inputs.args())
        got = outputs(given)
    except Exception as error:
        why = quietly(lambda: why_empty(trial, _check))
        return Finding(status=Status.ERROR, message=f"the case raised {shown(error)}", likely=why or "")
    if len(got) != len(expected):
        return broken("forward returns another number of outputs", got=str(len(got)), expected=str(len(expected)))
    limits = value_limits(trial, inputs, dict(enumerate(got)))
    for k, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
        what = "value" if len(got) == 1 else f"output {k}"
        if (finding := _of_no_tensor(what, mine, theirs)) is not HOLDS:
            return finding
        layouts = [getattr(y[k] if isinstance(y, tuple | list) else y, "layout", None) for y in (given, right)]
        if layouts[0] != layouts[1]:
            return broken(f"the {what} has another layout", got=str(layouts[0]), expected=str(layouts[1]))
        if (finding := compare(trial, what, mine, theirs, limits=limits.get(k))) is not HOLDS:
            noisy = "the primal of the spec draws random numbers, and the function draws none"
            return replace(finding, likely=noisy) if draws_against_function(trial) else finding
        if (limit := limits.get(k)) is None:
            continue
        again = partial(_place_of, trial, k)
        if (finding := than_the_reference(trial, what, (mine, theirs, limit.right), again)) is not HOLDS:
            return finding
    return HOLDS


def _place_of(trial: Trial, place: int, inputs: Inputs) -> Three:
    """Return an output, the primal's in the same dtype, and in float64."""
    calls = ((trial.spec.function, inputs), (trial.spec.primal, inputs), (trial.spec.primal, in_double(inputs)))
    got, expected, right = (outputs(call(*at.args()))[place] for call, at in calls)
    return got, expected, right


def returns_no_tensor(trial: Trial) -> Finding | None:
    """Return the finding that a function returns something else where its primal returns a tensor; None if it does."""
    inputs = Inputs.of(trial)
    got, expected = (outputs(call(*inputs.args())) for call in (trial.spec.function, trial.spec.primal))
    found = (_of_no_tensor("value", mine, theirs) for mine, theirs in zip(got, expected, strict=False))
    return next((finding for finding in found if finding is not HOLDS), None)


def _of_no_tensor(what: str, mine: Any, theirs: Any) -> Finding:
    if isinstance(mine, Tensor) or not isinstance(theirs, Tensor):
        return HOLDS
    kind = "None" if mine is None else f"a {type(mine).__name__}"
    return broken(f"the {what} is no tensor", got=kind, expected="a tensor", rank=Rank.WRONG)


PRIMAL = Law(
    name="primal",
    family="values",
    statement=r"F(x) = p(x)",
    check=_check,
    doc=__doc__ or "",
    needs_spec=True,
)
