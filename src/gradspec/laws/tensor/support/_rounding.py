"""Excuse a gradient that is rounding: it vanishes, and the terms of its sum do not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from gradspec.law import Trial
from gradspec.laws.tensor.support._call import Inputs, differentiable, like, outputs, vjp
from gradspec.laws.tensor.support._reference import reference

#: How many points between the case and zero say how large a gradient is that does not vanish.
POINTS = 8
#: By how much it must be larger than one that vanishes.
VANISHED = 1e-3
#: A larger difference is not rounding of anything in a case; in other dtypes nothing is excused.
FAR = {torch.float64: 1e-6, torch.complex128: 1e-6, torch.float32: 1e-2, torch.complex64: 1e-2}
#: How many units of rounding may be left.
UNITS = 32


def rounding_where_it_vanishes(trial: Trial, gradient: float, times: float = 1.0) -> float:
    """Return how far apart rounding takes two right gradients, where the gradient vanishes; 0.0 elsewhere.

    Behind a softmax that is saturated, or for a cotangent that the function does not see, a sound backward adds terms
    of the size of `v y` that cancel; what is left is a few units of their rounding, in the reference as in the
    function, and the largest element of the gradient says nothing of its size. A gradient that is small by nature, as
    that of a constant of physics times x, is as small at other points.

        |g - g'| <= 32 eps max|v| max|y|   and   max|g| <= 1e-3 max_k |g(x / 2^k)|

    (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 4.2: the error of a sum is bounded by its
    terms, not by its value.)

    Args:
        trial: the law's view of the case.
        gradient: the largest element of the right one.
        times: how many times larger the cotangents of the law are than numbers from -9 to 9.
    """
    inputs = Inputs.of(trial)
    given = inputs.tensors()
    if not given or any(t.dtype not in FAR for t in given):
        return 0.0
    right = reference(trial.spec)
    y = outputs(right(*inputs.args()))
    there = [inputs.scaled([0.5**k]) for k in range(POINTS)]
    found = [g for at in there for g in vjp(right, at, like(y, trial.seed)).values() if g is not None]
    if gradient > VANISHED * times * _largest(found):
        return 0.0
    rounding = max(torch.finfo(t.dtype).eps for t in given)
    return UNITS * rounding * times * _largest(y) * _largest(like(y, trial.seed))


def rounding_of_values(trial: Trial) -> float:
    """Return how far apart rounding takes two right values: as far as they move with the last digit of the arguments.

    Where terms cancel, as in the mean of what is centred, a value has no digits of its own, and another order of the
    same sum gives another one. What a stable algorithm returns is near to the exact value of arguments that are off by
    a few units of rounding.

        |y - y'| <= 32 max_k |f(x (1 + eps d_k)) - f(x)|,   |d_k| <= 1

    (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 1.5: mixed stability.)

    Args:
        trial: the law's view of the case.
    """
    inputs = Inputs.of(trial)
    given = inputs.tensors()
    if not given or any(t.dtype not in FAR for t in given):
        return 0.0
    y = outputs(trial.spec.primal(*inputs.args()))
    spread = []
    for k in range(POINTS):
        signs = like(given, trial.seed + k)
        moved = (t * (1 + torch.finfo(t.dtype).eps * s.sign()) for t, s in zip(given, signs, strict=True))
        at = Inputs({**inputs.values, **dict(zip(inputs.wrt, moved, strict=True))}, inputs.wrt)
        spread += [b - a for a, b in zip(y, outputs(trial.spec.primal(*at.args())), strict=True) if differentiable(a)]
    found = _largest(spread)
    return UNITS * found if found <= min(FAR[t.dtype] for t in given) else 0.0  # one that steps says nothing


def _largest(tensors: Iterable[Any]) -> float:
    sizes = (
        float(t.detach().abs().max()) for t in tensors if isinstance(t, Tensor) and differentiable(t) and t.numel()
    )
    return max(sizes, default=0.0)
