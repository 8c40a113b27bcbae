"""A result in a half type, held to the one that the reference has in that type: what rounds both is no excuse.

The bound of a result lets each operation of the reference round to the dtype of the call. A reference that computes in
float32 on the way, as torch's own operations do, says itself how near one comes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Rank, Trial, broken
from gradspec.laws.tensor.support._call import Inputs, differentiable
from gradspec.laws.tensor.support._compare import describe, element
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._differences import double
from gradspec.laws.tensor.support._rounded_line import share
from gradspec.laws.tensor.support._wide_memory import HALF
from gradspec.laws.tensor.support._witness import note_norm
from gradspec.spec import Accuracy

#: From how many roundings on a result is far off, and how many times as near the reference has to be.
FAR, TIMES = 2.0, 8.0
#: How far off the reference may be at most that shows what can be had, and how far away the seed of other draws is.
SOUND, _AWAY = 0.05, 61
#: Below so many roundings it is no mistake: results of many layers are kept in the dtype of a model on purpose.
LITTLE = 12.0


def roundings(got: Tensor, right: Tensor) -> float:
    """Return how far a result is off in the Euclidean norm, in units of rounding of its dtype."""
    return share(got, right) / (torch.finfo(got.dtype).eps / 2)


def is_far(mine: float, theirs: float) -> bool:
    """Whether a result is off by far more roundings than the reference's in the same dtype."""
    return mine > max(FAR, TIMES * theirs)


#: What a call gives, what the reference gives in the same dtype, and what is right.
Three = tuple[Any, Any, Any]


def than_the_reference(trial: Trial, what: str, three: Three, again: Callable[[Inputs], Three]) -> Finding:
    """Say whether a result that rounding may explain is by far farther off than the reference in the same dtype.

    Rounding takes one number in a thousand to the other side of a jump, as an element out of the support of a sparse
    softmax: so it has to be for other arguments, too.

    Args:
        trial: the law's view of the case.
        what: what is compared, "value".
        three: what the function gave, what the reference gave in the same dtype, and what is right in float64.
        again: returns the same for other arguments.
    """
    found = apart(*three)
    if found is None:
        return HOLDS
    if getattr(trial.spec, "accuracy", None) != Accuracy():  # what a spec declares decides
        note_norm(what, torch.inf)
        return HOLDS
    (mine, theirs), (got, _, right) = found, three
    unit, is_it = torch.finfo(got.dtype).eps / 2, is_far(mine, theirs)
    if is_it and theirs * unit < SOUND:
        inputs = Inputs.of(trial)
        elsewhere = quietly(lambda: apart(*again(inputs.redrawn(trial.seed + _AWAY))))
        if elsewhere is not None and is_far(*elsewhere):
            return _said(what, got, right, mine, theirs)
    note_norm(what, torch.inf if is_it else max(FAR, TIMES * theirs) * unit)
    return HOLDS


def apart(got: Any, expected: Any, right: Any) -> tuple[float, float] | None:
    """Return how many roundings a result in a half type is off, and the reference's; None where that says nothing."""
    if not is_half_result(got) or not isinstance(expected, Tensor) or expected.dtype != got.dtype or right is None:
        return None
    if not bool(right.any()) or not all(bool(t.isfinite().all()) for t in (right, got, expected)):
        return None
    return roundings(got, right), roundings(expected, right)


def _said(what: str, got: Tensor, right: Tensor, mine: float, theirs: float) -> Finding:
    name, unit = str(got.dtype).removeprefix("torch."), torch.finfo(got.dtype).eps / 2
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
    return differentiable(value) and bool(value.numel()) and value.dtype in HALF
