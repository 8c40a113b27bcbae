"""The surrogate of a trial as a function of what is differentiated: called, differentiated, moved in a direction."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from gradspec.law import Trial
from gradspec.laws.tensor.support._call import Inputs, fresh, gradients
from gradspec.laws.tensor.support._detached import held_still
from gradspec.laws.tensor.support._differences import inner
from gradspec.laws.tensor.support._reference import is_stand_in, on_spec_side
from gradspec.laws.tensor.support._rejection import along_samples

#: The attribute of a surrogate in which what `detach()` stops is not held still.
MOVES = "gradspec_moves"


def surrogate_of(trial: Trial, inputs: Inputs) -> Callable[..., tuple[Tensor, ...]]:
    """Return the surrogate as a function of the arguments that are differentiated."""
    return inputs.closed(lambda *args: on_spec_side("surrogate", trial.spec.surrogate, *args))


def value_and_gradients(
    trial: Trial, inputs: Inputs, v: tuple[Tensor, ...]
) -> tuple[tuple[Tensor, ...], tuple[Tensor | None, ...]]:
    """Return what the surrogate returns, and the gradients for cotangents; backward is handed copies of them."""
    leaves = {name: fresh(t).requires_grad_() for name, t in zip(inputs.wrt, inputs.tensors(), strict=True)}
    y = surrogate_of(trial, inputs)(*leaves.values())
    kept = tuple(t.detach().clone().requires_grad_(t.requires_grad) for t in y)  # backward may free what it was given
    return kept, tuple(gradients(y, leaves, v).values()) if v else ()


def along_direction(
    trial: Trial, inputs: Inputs, u: tuple[Tensor, ...], v: tuple[Tensor, ...]
) -> Callable[[float], float]:
    """Return the surrogate, weighted with cotangents, as a function of a step in a direction."""
    surrogate, x = surrogate_of(trial, inputs), inputs.tensors()
    if not is_stand_in(trial.spec.surrogate) and MOVES not in trial.spec.surrogate.__dict__:
        # An audit judges what is stopped by name, see `declared_zero`.
        surrogate = held_still(surrogate, x)
    if trial.spec.noise is not None:
        surrogate = along_samples(surrogate, x)

    def along(step: float) -> float:
        moved = [a + step * b for a, b in zip(x, u, strict=True)]
        if is_stand_in(trial.spec.surrogate):  # what forward computes may depend on whether a gradient is asked for
            moved = [t.requires_grad_() for t in moved]
        return sum(inner(w, t) for w, t in zip(v, surrogate(*moved), strict=True))

    return along
