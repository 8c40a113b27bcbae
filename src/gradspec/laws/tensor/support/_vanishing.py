"""Whether a derivative in float32 is nothing but rounding: it vanishes where the case lies, and not nearer to zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gradspec.laws.tensor.support._call import Inputs, differentiable
from gradspec.laws.tensor.support._differences import SINGLE, inner
from gradspec.laws.tensor.support._rounding import POINTS, VANISHED

#: How many units of rounding of float32 are left of the largest value, over the longest step of a difference.
_LEFT = 100 / SINGLE.steps[0]


def vanishes(
    ask: Callable[[Inputs], tuple[Any, Any]],
    inputs: Inputs,
    u: tuple[Tensor, ...],
    v: tuple[Tensor, ...],
    *,
    off: float,
    of: float,
) -> bool:
    """Whether a derivative is far smaller than nearer to zero, and off by no more than what rounds there.

    As in the tail of a sigmoid that is written as 1 + tanh: what is left of the sum is a step of its last digit.

    Args:
        ask: returns value and gradients of a call.
        inputs: the arguments of the case.
        u: the direction of the derivative.
        v: the cotangents.
        off: how far the derivative is from the numerical one.
        of: the larger of the two.
    """
    slopes, sizes = [0.0], [0.0]
    for k in range(1, POINTS):
        y, grads = ask(inputs.scaled([0.5**k]))
        slopes.append(abs(sum(inner(g, b) for g, b in zip(grads, u, strict=True) if g is not None)))
        sizes.append(sum(float((w * t).detach().abs().sum()) for w, t in zip(v, y, strict=True) if differentiable(t)))
    return of <= VANISHED * max(slopes) and off <= _LEFT * torch.finfo(torch.float32).eps * max(sizes)
