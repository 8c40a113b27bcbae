"""A call whose value is infinite in places, as a mask of attention makes it: the part that has a derivative."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from gradspec.law import Trial
from gradspec.laws.tensor.support._call import Inputs, differentiable, gradients, like, outputs

#: How far arguments are moved to see whether a finite output depends on them.
_STEP = 1e-3


def finite_part(trial: Trial, inputs: Inputs) -> Trial:
    """Return a trial whose surrogate has zeros for what is infinite or NaN; the same one where nothing is.

    An argument whose gradient is infinite there, as that of a logarithm at zero, is held still, if no finite output
    moves with it.
    """
    surrogate = trial.spec.surrogate
    leaves = inputs.leaves()
    y = outputs(surrogate(*inputs.args(leaves)))
    finite = [t.detach().isfinite() if differentiable(t) else None for t in y]
    known = [one for one in finite if one is not None]
    if all(bool(one.all()) for one in known) or not any(bool(one.any()) for one in known):
        return trial
    v = tuple(t if one is None else t * one for t, one in zip(like(y, trial.seed), finite, strict=True))
    held = {name: ~g.isfinite() for name, g in gradients(y, leaves, v).items() if g is not None}
    values = dict(inputs.values)
    for name, d in zip(inputs.wrt, like(inputs.tensors(), trial.seed + 1), strict=True):
        if name in held:
            values[name] = values[name] + _STEP * d * held[name]
    moved = outputs(surrogate(*Inputs(values, inputs.wrt).args()))
    if any(one is not None and not torch.equal(a[one], b[one]) for a, b, one in zip(y, moved, finite, strict=True)):
        held = {}
    return replace(trial, spec=replace(trial.spec, surrogate=_of(surrogate, inputs, held, finite)))


def _of(
    surrogate: Callable[..., Any], inputs: Inputs, held: dict[str, Tensor], finite: list[Tensor | None]
) -> Callable[..., Any]:
    @wraps(surrogate)
    def called(*args: Any) -> Any:
        given = [
            torch.where(held[name], inputs.values[name].detach(), value) if name in held else value
            for name, value in zip(inputs.values, args, strict=True)
        ]
        found = surrogate(*given)
        y = [
            t if one is None else torch.where(one, t, torch.zeros_like(t))
            for t, one in zip(outputs(found), finite, strict=True)
        ]
        return y[0] if isinstance(found, Tensor) else tuple(y)

    return called
