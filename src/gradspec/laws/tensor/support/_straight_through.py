"""Whether a surrogate stops gradients on purpose."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gradspec.law import Trial
from gradspec.laws.tensor.support._call import Inputs, outputs


class _Watching(TorchFunctionMode):
    """Whether a gradient is stopped by name."""

    stopped = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.stopped = self.stopped or getattr(func, "__name__", "") in ("detach", "detach_")
        return func(*args, **(kwargs or {}))


def is_straight_through(trial: Trial, inputs: Inputs) -> bool:
    """Whether the surrogate is the primal with another gradient, `s + (p - s).detach()`: it stops some on purpose."""
    spec, watching = trial.spec, _Watching()
    with watching:
        s = outputs(spec.surrogate(*inputs.args()))
    p = outputs(spec.primal(*inputs.args()))
    return (
        watching.stopped
        and spec.surrogate is not spec.primal
        and all(torch.allclose(a, b, equal_nan=True) for a, b in zip(s, p, strict=True))
    )
