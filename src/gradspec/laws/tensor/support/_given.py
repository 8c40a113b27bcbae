"""The results of one call of a function, forward and backward, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from gradspec.law import Trial
from gradspec.laws.tensor.support._call import Inputs, differentiable, gradients, like, outputs

Given = dict[str, Tensor]


def values_and_gradients(function: Callable[..., Any], trial: Trial) -> tuple[Given, Given]:
    """Return the outputs of a function, and its gradients for a cotangent, by name; without what is None."""
    inputs = Inputs.of(trial)
    leaves = inputs.leaves()
    y = outputs(function(*inputs.args(leaves)))
    values = {"value" if len(y) == 1 else f"output {k}": t.detach() for k, t in enumerate(y) if isinstance(t, Tensor)}
    tracked = tuple(t for t in y if isinstance(t, Tensor) and t.requires_grad)
    found = gradients(tracked, leaves, like(tracked, trial.seed)) if tracked and leaves else {}
    return values, {f"gradient of `{n}`": t.detach() for n, t in found.items() if t is not None and differentiable(t)}
