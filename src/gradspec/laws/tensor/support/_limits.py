"""The limits of what a function of low precision returns, from the reference of its spec in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from gradspec.law import Trial
from gradspec.laws.tensor.support._bound import Bound, Limits, declared, lowest, units_of
from gradspec.laws.tensor.support._call import Inputs, differentiable, outputs, vjp
from gradspec.laws.tensor.support._differences import double, in_double
from gradspec.laws.tensor.support._reference import on_spec_side, reference


def value_limits(trial: Trial, inputs: Inputs, got: Mapping[int, Tensor]) -> dict[int, Limits | None]:
    """Return the limits of outputs by place; nothing where the numbers are float64, or the primal takes none."""
    bound = _bound(trial, inputs, lambda wide: outputs(on_spec_side("primal", trial.spec.primal, *wide.args())))
    if bound is None or len(bound.right) <= max(got, default=0):
        return {}
    return {place: _limits(bound, place, one) for place, one in got.items()}


def gradient_limits(
    trial: Trial, inputs: Inputs, v: tuple[Tensor, ...], got: Mapping[str, Tensor | None]
) -> dict[str, Limits | None]:
    """Return the limits of each gradient, by name; of cotangents as they are, in the low precision."""
    cotangents = tuple(map(double, v))
    bound = _bound(trial, inputs, lambda wide: list(vjp(reference(trial.spec), wide, cotangents).values()))
    if bound is None:
        return {}
    return {name: _limits(bound, place, got[name]) for place, name in enumerate(inputs.wrt)}


def _bound(trial: Trial, inputs: Inputs, of: Callable[[Inputs], Sequence[Tensor | None]]) -> Bound | None:
    if (dtype := lowest(inputs.values.values())) is None:
        return None
    elements = sum(t.numel() for t in inputs.values.values() if isinstance(t, Tensor))
    units, wide = units_of(trial.spec, dtype), in_double(inputs)

    def near(unit: float, seed: int) -> Sequence[Tensor | None]:
        return of(_off(wide, unit, seed))

    try:
        off = declared(trial.spec, elements)
        return Bound(lambda: of(wide), units, trial.seed, off=off, near=near)
    except Exception:  # it takes no float64, and says nothing then of what is right in it
        return None


def _off(inputs: Inputs, unit: float, seed: int) -> Inputs:
    """Return arguments in which each number is off at random by a unit of rounding at most."""
    generator = torch.Generator().manual_seed(seed)

    def off(value: Any) -> Any:
        if not differentiable(value):
            return value
        errors = torch.empty(value.shape, dtype=torch.float64).uniform_(-unit, unit, generator=generator)
        return value.detach() * (1 + errors.to(value.device))

    return Inputs({name: tree_map(off, value) for name, value in inputs.values.items()}, inputs.wrt)


def _limits(bound: Bound, place: int, got: Tensor | None) -> Limits | None:
    is_there = got is not None and differentiable(got)
    return bound.limits(place, got.dtype.to_real()) if is_there else None  # type: ignore[union-attr]  # asked
