"""Whether forward jumps on a way of an argument, as a rounding does where its scale moves."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from gradspec.laws.tensor.support._call import Inputs, differentiable, fresh, like
from gradspec.laws.tensor.support._differences import is_single

#: How often a way is halved, and which share of how far forward moves on it is left by a jump; in float64, in others.
_HALVED, _HALVED_ONCE = (30, 1e-5), (16, 1e-3)


def jumps(function: Callable[..., tuple[Tensor, ...]], inputs: Inputs, name: str) -> bool:
    """Whether forward jumps somewhere on a way of an argument: half of the way, half of that, ..., and it still bends.

    Always on the half in whose middle it is farther from the mean of its ends: what is smooth bends ever less.
    """
    at, x = inputs.wrt.index(name), inputs.tensors()
    halvings, least = _HALVED if digits_of(x[at], values_of(function, x)) == torch.float64 else _HALVED_ONCE
    size = x[at].abs()
    for number, scale in enumerate((size, size.mean().clamp(min=1e-3))):
        way = scale * unlike(x[at], 4 + number)

        def at_step(step: float, way: Tensor = way) -> list[Tensor]:
            return values_of(function, (*x[:at], x[at] + step * way, *x[at + 1 :]))

        try:
            low, high = 0.0, 0.5
            left, middle, right = (at_step(step) for step in (low, high / 2, high))
            first = _far(left, right)
            for _ in range(halvings):
                half = (low + high) / 2
                before, after = at_step((low + half) / 2), at_step((half + high) / 2)
                if _bend(left, before, middle) >= _bend(middle, after, right):
                    high, middle, right = half, before, middle
                else:
                    low, left, middle = half, middle, after
            if _bend(left, middle, right) > least * first > 0:
                return True
        except Exception:  # no value there: no probability, no positive number
            continue
    return False


def digits_of(x: Tensor, y: list[Tensor]) -> torch.dtype:
    """Return the dtype whose rounding hides the steps of forward: float32 where its results have no more digits."""
    return torch.float32 if x.dtype == torch.float64 and all(map(is_single, y)) else x.dtype


def _far(a: list[Tensor], b: list[Tensor]) -> float:
    """Return how far the element that differs most differs."""
    return max((float((s - t).abs().max()) for s, t in zip(a, b, strict=True)), default=0.0)


def _bend(left: list[Tensor], middle: list[Tensor], right: list[Tensor]) -> float:
    """Return how far the middle of a way lies from the mean of its ends, in the element that is farthest."""
    return _far(middle, [(a + b) / 2 for a, b in zip(left, right, strict=True)])


def unlike(t: Tensor, seed: int = 3) -> Tensor:
    """Return numbers between a half and 1, of either sign."""
    (d,) = like((t,), seed)
    return d / d.abs() * (0.5 + 0.5 * d.abs() / d.abs().max())


def values_of(function: Callable[..., tuple[Tensor, ...]], x: tuple[Tensor, ...]) -> list[Tensor]:
    with torch.no_grad():
        return [t.detach().clone() for t in function(*map(fresh, x)) if differentiable(t) and t.numel()]
