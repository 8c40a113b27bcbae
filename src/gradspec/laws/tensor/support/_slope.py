"""Where a surrogate has a slope, and whether a value moves: asked where a gradient is zero, or is not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gradspec.law import Trial
from gradspec.laws.tensor.support._call import Inputs, gradients, like, outputs
from gradspec.laws.tensor.support._differences import double, inner, slope

#: The values that are tried for all elements of an argument, and the factors that are tried on the argument itself.
GRID = tuple(k / 4 for k in range(-40, 41))
FACTORS = (0.5, 0.1, 0.01, -1.0, 2.0, 10.0)
#: How many units of rounding a gradient may be off by that is a sum of terms which cancel.
_ROUNDED = 1024


def sloped(trial: Trial, inputs: Inputs, name: str) -> str:
    """Return an argument for which the surrogate's gradient is not zero, in words; empty if none was found.

    A range of values that all do is best ("-1 < x < 1"), then a factor ("0.1 * x").
    """
    value = inputs.values[name]
    if value.is_complex():
        return ""
    moved = [c for c in GRID if _moves(trial, inputs, name, torch.full_like(value, c + 1e-3))]
    if moved and len(moved) < len(GRID):
        low, high = moved[0], moved[-1]
        below = f"{low:g} < " if low > GRID[0] else ""
        above = f" < {high + 0.25:g}" if high < GRID[-1] else ""
        if below or above:
            return f"{below}{name}{above}"
    if moved:
        return f"other values of {name}"
    return next((f"{f:g} * {name}" for f in FACTORS if _moves(trial, inputs, name, value * f)), "")


def _moves(trial: Trial, inputs: Inputs, name: str, value: Tensor) -> bool:
    leaves = {name: value.detach().clone().requires_grad_()}
    try:
        y = outputs(trial.spec.surrogate(*inputs.args(leaves)))
        v = like(y, trial.seed)
        gradient = gradients(y, leaves, v)[name]
        tiny = rounding_of_a_sum(v, y, value.dtype)
    except Exception:  # a value outside of the domain
        return False
    if gradient is None or not bool(gradient.isfinite().all()):
        return False
    return bool((gradient.abs() > tiny).any())


def rounding_of_a_sum(v: tuple[Tensor, ...], y: tuple[Tensor, ...], dtype: torch.dtype) -> float:
    """Return how large rounding leaves a gradient that is zero: terms of the size of `v y` cancel in it."""
    size = sum(float((w * t.detach()).abs().sum()) for w, t in zip(v, y, strict=True))
    return _ROUNDED * torch.finfo(dtype).eps * (1 + size)


def moves_smoothly(function: Callable[..., Any], inputs: Inputs, name: str, seed: int) -> bool:
    """Whether the output has a derivative in an argument that is not zero, by central differences."""
    x, y = double(inputs.values[name]), values_of(function, inputs)
    v = like(tuple(t for t in y), seed)
    (u,) = (t / 9 for t in like((x,), seed))

    def along(step: float) -> float:
        moved = (x + step * u).to(inputs.values[name].dtype)
        return sum(inner(w, t) for w, t in zip(v, values_of(function, with_values(inputs, {name: moved})), strict=True))

    try:
        numeric = slope(along)
    except Exception:
        return False
    scale = max(abs(numeric.value), sum(float((w * t).abs().sum()) for w, t in zip(v, y, strict=True)))
    dtype = inputs.values[name].dtype.to_real()
    return numeric.is_clear(scale, dtype) and not numeric.agrees(0.0, scale, dtype)


def with_values(inputs: Inputs, changed: dict[str, Tensor]) -> Inputs:
    """Return the arguments of a call with other values of some."""
    return Inputs({**inputs.values, **changed}, inputs.wrt)


def values_of(function: Callable[..., Any], inputs: Inputs) -> tuple[Tensor, ...]:
    """Return the outputs of a call, without a graph."""
    with torch.no_grad():
        return tuple(t.detach().clone() for t in outputs(function(*inputs.args())))
