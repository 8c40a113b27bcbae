"""Whether a difference is rounding: in another precision it is as many units of that one, and a mistake is not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from gradspec._engine._child import Child, available
from gradspec.law import AnyTrial, Finding, Law, Status
from gradspec.laws import comparing, quietly
from gradspec.laws.tensor.support._bounded import bound_by
from gradspec.laws.tensor.support._jumps import known_not_to_jump
from gradspec.spec import FunctionSpec

#: Makes the view of a case, for a number that is added to the seed of the cotangents.
NewTrial = Callable[[int], AnyTrial]
#: How many calls in the other precision, each with cotangents of its own: a single one may be exact by luck.
CALLS = 8
#: How many times as far as the furthest of them a comparison may be off, in units of rounding.
TIMES = 16
#: Each precision is asked of the other.
OTHER = {
    torch.float64: torch.float32,
    torch.complex128: torch.complex64,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}


def beyond_rounding(law: Law, finding: Finding, trial: NewTrial) -> Finding:
    """Return what a law finds if differences that rounding explains are passed over.

    A law compares results to a fixed number of digits. Where terms cancel, neither the function nor the reference has
    so many. How many they have, the same law says of the same function in another precision: an error of rounding is as
    many units there, one of a formula is as large.

    Args:
        law: what failed, by a difference that is small.
        finding: what it found.
        trial: makes a new view of the case.
    """
    if not isinstance(trial(0).spec, FunctionSpec) or (dtype := _dtype(trial(0))) is None:
        return finding
    if (furthest := _furthest(law, dtype, trial)) is None:
        return finding
    #   |g - g'|_64  <=  TIMES (u_64 / u_32)  max_k |g - g'|_32
    # The forward error of a backward stable algorithm is at most the condition of the problem times the unit of
    # rounding, and the condition is the same in each precision (Higham, Accuracy and Stability of Numerical Algorithms,
    # 2002, section 1.6).
    units = torch.finfo(dtype).eps / torch.finfo(OTHER[dtype]).eps
    with comparing(allowed={what: TIMES * units * off for what, off in furthest.items()}):
        again = quietly(lambda: law.check(trial(0)))
    return finding if again is None else again


def _furthest(law: Law, dtype: torch.dtype, trial: NewTrial) -> dict[str, float] | None:
    """Return how far off the comparisons are in the other precision, by what they compare; None if one does not end.

    In a child, where there can be one: a function that keeps something from call to call would keep it for the rest of
    the run, in a dtype that nobody has given it.
    """
    profile = trial(0).profile
    if not available(profile.device):
        return _noted(law, dtype, trial)
    with Child[int, dict[str, float] | None](
        lambda _: _noted(law, dtype, trial), time_limit=profile.time_limit, silent=True
    ) as child:
        answer = child.ask(0)
    return None if isinstance(answer, Finding) else answer


def _noted(law: Law, dtype: torch.dtype, trial: NewTrial) -> dict[str, float] | None:
    furthest: dict[str, float] = {}
    bounded = bound_by(lambda: _again(law, trial))  # an iteration to a tolerance may have no end in float32
    for k in range(CALLS):
        other = trial(k)
        case = replace(other.case, args=tree_map(_turned(dtype), other.case.args), kwargs=_kwargs(other, dtype))
        with comparing(only_notes=True) as seen, bounded(), known_not_to_jump():
            found = quietly(partial(law.check, replace(other, case=case)))
        if found is None or found.status is not Status.HOLDS:
            return None  # it says nothing of the other precision
        for what, off in seen.off.items():
            furthest[what] = max(off, furthest.get(what, 0.0))
    return {what: off for what, off in furthest.items() if math.isfinite(off)}


def _again(law: Law, trial: NewTrial) -> None:
    """Find it again.

    Raises:
        RuntimeError: the law finds something else, as where it cannot be counted.
    """
    found = quietly(lambda: law.check(trial(0)))
    if found is None or found.status is not Status.BROKEN:
        raise RuntimeError("it is not found again")


def _dtype(trial: AnyTrial) -> torch.dtype | None:
    """Return the widest dtype of a case if it has several; None otherwise."""
    found = {t.dtype for t in tree_leaves((trial.case.args, trial.case.kwargs)) if isinstance(t, Tensor)}
    return next((dtype for dtype in OTHER if dtype in found), None)


def _turned(dtype: torch.dtype) -> Callable[[Any], Any]:
    def turn(value: Any) -> Any:
        is_meant = isinstance(value, Tensor) and value.dtype in OTHER
        return value.to(OTHER[value.dtype]) if is_meant and value.dtype.to_real() == dtype.to_real() else value

    return turn


def _kwargs(trial: AnyTrial, dtype: torch.dtype) -> dict[str, Any]:
    return {name: tree_map(_turned(dtype), value) for name, value in trial.case.kwargs.items()}
