"""A result in a half type, held to the one that the reference has in that type: what rounds both is no excuse.

The bound of a result lets each operation of the reference round to the dtype of the call. A reference that computes in
float32 on the way, as torch's own operations do, says itself how near one comes.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Rank, Trial, broken
from gradspec.laws.tensor.support._bound import Limits
from gradspec.laws.tensor.support._call import differentiable
from gradspec.laws.tensor.support._compare import describe, element
from gradspec.laws.tensor.support._differences import double
from gradspec.laws.tensor.support._witness import note_norm
from gradspec.spec import Accuracy

#: From how many roundings on a result is far off, and how many times as near the reference has to be.
FAR, TIMES = 2.0, 8.0
#: Below so many roundings it is no mistake: results of many layers are kept in the dtype of a model on purpose.
LITTLE = 12.0


def roundings(got: Tensor, right: Tensor) -> float:
    """Return how far a result is off in the Euclidean norm, in units of rounding of its dtype."""
    return float((double(got) - right).norm() / right.norm()) / (torch.finfo(got.dtype).eps / 2)


def lets_pass(expected: Tensor, right: Tensor) -> float:
    """Return how many roundings a result in a half type may be off, beside the reference's in the same dtype."""
    return max(FAR, TIMES * roundings(expected, right))


def than_the_reference(trial: Trial, what: str, got: Any, expected: Any, limits: Limits | None) -> Finding:
    """Say whether a result that rounding may explain is by far farther off than the reference in the same dtype.

    Args:
        trial: the law's view of the case.
        what: what is compared, "value".
        got: what the function gave.
        expected: what the reference gave in the same dtype.
        limits: what is right in float64.
    """
    if limits is None or not is_half_result(got) or not isinstance(expected, Tensor) or expected.dtype != got.dtype:
        return HOLDS
    right = limits.right
    is_there = bool(right.any()) and all(bool(t.isfinite().all()) for t in (right, got, expected))
    if not is_there or getattr(trial.spec, "accuracy", None) != Accuracy():  # what a spec declares decides
        note_norm(what, torch.inf)
        return HOLDS
    mine, theirs, most = roundings(got, right), roundings(expected, right), lets_pass(expected, right)
    name, unit = str(got.dtype).removeprefix("torch."), torch.finfo(got.dtype).eps / 2
    if mine <= most:
        note_norm(what, most * unit)
        return HOLDS
    worst = int((double(got) - right).abs().flatten().argmax())
    return broken(
        f"{what} is off by {mine * unit:.2%} in {name}, {mine / max(theirs, 0.1):.0f} times as far as the reference "
        f"in {name}",
        argument=f"{what}, {describe(got)}",
        **element(worst, got, right.to(got.dtype)),
        rank=Rank.WASTE if mine < LITTLE else "",
    )


def is_half_result(value: Any) -> bool:
    """Whether it is a tensor of a half type with numbers in it."""
    return differentiable(value) and bool(value.numel()) and value.dtype in (torch.float16, torch.bfloat16)
