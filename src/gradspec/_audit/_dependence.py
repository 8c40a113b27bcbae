"""How the output and the gradient of a function move with an argument, by calls with other values of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import torch
from torch import Tensor

from gradspec.explain import gradient_of
from gradspec.law import Trial
from gradspec.laws.tensor.support._call import Inputs, differentiable, like, resembling
from gradspec.laws.tensor.support._compare import largest
from gradspec.laws.tensor.support._slope import rounding_of_a_sum, values_of, with_values


def moves_with(trial: Trial, inputs: Inputs, name: str, *, is_value: bool = False) -> bool:
    """Whether the output changes with an argument: with other numbers like it, with its negative, with it plus 1.

    Rounding that is left of sums that cancel is not a change: a bias before a normalisation moves nothing.

    Args:
        trial: the call.
        inputs: its arguments.
        name: the argument.
        is_value: whether only values that a gradient could belong to count, and not whether a call raises.
    """
    before = values_of(trial.spec.function, inputs)
    for other in _others(inputs.values[name], trial.seed):
        try:
            after = values_of(trial.spec.function, with_values(inputs, {name: other}))
        except Exception:
            if is_value:
                continue
            return True  # it decides whether the call raises
        pairs = [(a, b) for a, b in zip(before, after, strict=False) if differentiable(a) or not is_value]
        if any(_differ(a, b) for a, b in pairs):
            return True
    return False


def fixed_gradient(trial: Trial, inputs: Inputs, name: str) -> bool:
    """Whether the gradient of an argument is the same, and not zero, where all arguments are others."""
    first, *rest = _gradients_elsewhere(trial, inputs, name)
    return first is not None and bool(first.any()) and all(t is not None and torch.equal(first, t) for t in rest)


def zero_gradient(trial: Trial, inputs: Inputs, name: str) -> bool:
    """Whether the gradient of an argument is zero, also where all arguments are others, and nearer to zero.

    So is one that is as small as rounding leaves it, if the output does not move with the argument.
    """
    values = tuple(t for t in values_of(trial.spec.function, inputs) if differentiable(t))
    tiny = rounding_of_a_sum(like(values, trial.seed), values, inputs.values[name].dtype)
    here = gradient_of(trial, inputs, name)
    if here is None or not float(here.abs().max() if here.numel() else 0.0) <= tiny:  # nor is a NaN zero
        return False
    found = _gradients_elsewhere(trial, inputs, name)
    if any(t is None for t in found):
        return False
    found += _off_zero(trial, inputs, name)  # where all numbers are 0, a kink of relu, nothing above has moved them
    found += _nearer_to_zero(trial, inputs, name)  # where a tanh is saturated, or a clip clips, it is as much so above
    if not any(bool(t.any()) for t in found if t is not None):
        return True
    is_tiny = all(float(t.abs().max()) <= tiny for t in found if t is not None)  # not of a NaN
    return is_tiny and not moves_with(trial, inputs, name, is_value=True)


def _gradients_elsewhere(trial: Trial, inputs: Inputs, name: str) -> list[Tensor | None]:
    """Return the gradient of an argument at the case, at arguments like it, and at their negative; None: it raises."""
    found = [gradient_of(trial, inputs, name)]
    for k in range(2):
        others = dict(zip(inputs.wrt, resembling(inputs.tensors(), trial.seed + k), strict=True))
        try:
            found.append(gradient_of(trial, with_values(inputs, {n: -t if k else t for n, t in others.items()}), name))
        except Exception:
            found.append(None)
    return found


def _off_zero(trial: Trial, inputs: Inputs, name: str) -> list[Tensor | None]:
    """Return the gradient of an argument where a tenth at most is added to each number, or taken from it."""
    found = []
    for k in range(2):
        moved = (t + d / 90 for t, d in zip(inputs.tensors(), like(inputs.tensors(), trial.seed + k), strict=True))
        with suppress(Exception):  # a logarithm takes no negative number
            found.append(gradient_of(trial, with_values(inputs, dict(zip(inputs.wrt, moved, strict=True))), name))
    return found


def _nearer_to_zero(trial: Trial, inputs: Inputs, name: str) -> list[Tensor | None]:
    """Return the gradient of an argument where it is a 64th of itself, and a 4096th."""
    found = []
    for factor in (2**-6, 2**-12):
        with suppress(Exception):
            found.append(gradient_of(trial, with_values(inputs, {name: inputs.values[name] * factor}), name))
    return found


def infinite_at_zero(trial: Trial, inputs: Inputs, name: str) -> bool:
    """Whether the value is finite where an argument is zero, and the gradient is not."""
    there = with_values(inputs, {name: torch.zeros_like(inputs.values[name])})
    try:
        if not all(bool(t.isfinite().all()) for t in values_of(trial.spec.function, there)):
            return False
        gradient = gradient_of(trial, there, name)
    except Exception:
        return False
    return gradient is not None and not bool(gradient.isfinite().all())


def _others(value: Tensor, seed: int) -> Iterator[Tensor]:
    yield from resembling((value,), seed)
    yield -value
    yield value + 1
    yield value + torch.arange(value.numel(), device=value.device).view(value.shape).to(value.dtype)


def _differ(a: Tensor, b: Tensor) -> bool:
    """Whether two values differ by more than rounding leaves of sums that cancel."""
    if a.shape != b.shape or not differentiable(a):
        return a.shape != b.shape or not torch.equal(a, b)
    apart = (a - b).abs().nan_to_num(nan=0.0, posinf=torch.inf)
    is_number = a.isnan() != b.isnan()
    return bool(is_number.any()) or float(apart.max() if apart.numel() else 0) > _noise(a, b)


def _noise(a: Tensor, b: Tensor) -> float:
    return float(torch.finfo(a.dtype).eps ** 0.5 * max(largest(a), largest(b)))
