"""Which arguments' terms of a tangent are wrong."""

from __future__ import annotations

from torch import Tensor

from gradspec.law import HOLDS, Reason, Trial
from gradspec.laws.tensor.support._call import Inputs, each_alone, pushforward
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._reference import reference


def wrong_terms(trial: Trial, inputs: Inputs, x: tuple[Tensor, ...], u: tuple[Tensor, ...]) -> Reason | None:
    """Say which arguments' terms are wrong, if some are right: the tangent is linear, one argument moves at a time."""
    wrong = []
    for name, alone in zip(inputs.wrt, each_alone(u), strict=True):
        mine, right = (pushforward(inputs.closed(f), x, alone)[1] for f in (trial.spec.function, reference(trial.spec)))
        if any(compare(trial, "tangent", a, b) is not HOLDS for a, b in zip(mine, right, strict=True)):
            wrong.append(f"`{name}`")
    said = f"the term of {' and '.join(wrong)} is wrong in it"
    some = 0 < len(wrong) < len(inputs.wrt)
    return Reason(kind="wrong terms", words=said, evidence={"arguments": wrong}) if some else None
