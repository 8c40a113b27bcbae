"""How the output and the gradient of a function move with an argument, by calls with other values of it."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from gradspec.law import Trial
from gradspec.laws.tensor.support._call import Inputs, gradients, like, outputs, resembling
from gradspec.laws.tensor.support._differences import double, inner, slope


def moves_with(trial: Trial, inputs: Inputs, name: str) -> bool:
    """Whether the output changes with an argument: with other numbers like it, with its negative, with it plus 1."""
    before = _values(trial, inputs)
    for other in _others(inputs.values[name], trial.seed):
        try:
            after = _values(trial, _with(inputs, {name: other}))
        except Exception:
            return True  # it decides whether the call raises
        if any(a.shape != b.shape or not torch.equal(a, b) for a, b in zip(before, after, strict=False)):
            return True
    return False


def moves_smoothly(trial: Trial, inputs: Inputs, name: str) -> bool:
    """Whether the output has a derivative in an argument that is not zero, by central differences."""
    x, y = double(inputs.values[name]), _values(trial, inputs)
    v = like(tuple(t for t in y), trial.seed)
    (u,) = (t / 9 for t in like((x,), trial.seed))

    def along(step: float) -> float:
        moved = (x + step * u).to(inputs.values[name].dtype)
        return sum(inner(w, t) for w, t in zip(v, _values(trial, _with(inputs, {name: moved})), strict=True))

    try:
        numeric = slope(along)
    except Exception:
        return False
    scale = max(abs(numeric.value), sum(float((w * t).abs().sum()) for w, t in zip(v, y, strict=True)))
    dtype = inputs.values[name].dtype.to_real()
    return numeric.is_clear(scale, dtype) and not numeric.agrees(0.0, scale, dtype)


def fixed_gradient(trial: Trial, inputs: Inputs, name: str) -> bool:
    """Whether the gradient of an argument is the same, and not zero, where all arguments are others."""
    first, *rest = _gradients_elsewhere(trial, inputs, name)
    return first is not None and bool(first.any()) and all(t is not None and torch.equal(first, t) for t in rest)


def zero_gradient(trial: Trial, inputs: Inputs, name: str) -> bool:
    """Whether the gradient of an argument is zero, also where all arguments are others."""
    return all(t is not None and not bool(t.any()) for t in _gradients_elsewhere(trial, inputs, name))


def _gradients_elsewhere(trial: Trial, inputs: Inputs, name: str) -> list[Tensor | None]:
    """Return the gradient of an argument at the case, at arguments like it, and at their negative; None: it raises."""
    found = [_gradient(trial, inputs, name)]
    for k in range(2):
        others = dict(zip(inputs.wrt, resembling(inputs.tensors(), trial.seed + k), strict=True))
        try:
            found.append(_gradient(trial, _with(inputs, {n: -t if k else t for n, t in others.items()}), name))
        except Exception:
            found.append(None)
    return found


def infinite_at_zero(trial: Trial, inputs: Inputs, name: str) -> bool:
    """Whether the value is finite where an argument is zero, and the gradient is not."""
    there = _with(inputs, {name: torch.zeros_like(inputs.values[name])})
    try:
        if not all(bool(t.isfinite().all()) for t in _values(trial, there)):
            return False
        gradient = _gradient(trial, there, name)
    except Exception:
        return False
    return gradient is not None and not bool(gradient.isfinite().all())


def _others(value: Tensor, seed: int) -> Iterator[Tensor]:
    yield from resembling((value,), seed)
    yield -value
    yield value + 1
    yield value + torch.arange(value.numel(), device=value.device).view(value.shape).to(value.dtype)


def _with(inputs: Inputs, changed: dict[str, Tensor]) -> Inputs:
    return Inputs({**inputs.values, **changed}, inputs.wrt)


def _values(trial: Trial, inputs: Inputs) -> tuple[Tensor, ...]:
    with torch.no_grad():
        return tuple(t.detach().clone() for t in outputs(trial.spec.function(*inputs.args())))


def _gradient(trial: Trial, inputs: Inputs, name: str) -> Tensor | None:
    leaves = inputs.leaves()
    y = outputs(trial.spec.function(*inputs.args(leaves)))
    return gradients(y, leaves, like(y, trial.seed))[name]
