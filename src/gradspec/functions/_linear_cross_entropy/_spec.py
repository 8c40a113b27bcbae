"""The spec of the linear cross-entropy."""

from __future__ import annotations

from gradspec.functions._linear_cross_entropy import _cases
from gradspec.functions._linear_cross_entropy._differences import DIFFERENCES
from gradspec.functions._linear_cross_entropy._function import LinearCrossEntropy
from gradspec.functions._linear_cross_entropy._loss import linear_cross_entropy
from gradspec.functions._linear_cross_entropy._values import plain_loss
from gradspec.spec import FunctionSpec

LINEAR_CROSS_ENTROPY = FunctionSpec(
    name="linear_cross_entropy",
    function=LinearCrossEntropy.apply,
    primal=plain_loss,
    surrogate=plain_loss,
    wrt=("x", "weight", "bias", "margin"),
    cases=_cases.cases,
    raises=_cases.misuses,
    arguments=_cases.ARGUMENTS,
    documented=(LinearCrossEntropy, linear_cross_entropy),
    references=_cases.REFERENCES,
    differences=DIFFERENCES,
)
