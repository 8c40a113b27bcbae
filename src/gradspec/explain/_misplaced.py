"""Whether a gradient that is None stands at the place of another argument, which takes none."""

from __future__ import annotations

import math

from torch import Tensor

from gradspec.law import Reason, Trial
from gradspec.laws.tensor.support._call import Inputs, differentiable, like, outputs, vjp
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._graph import classes_behind, is_of_operator
from gradspec.laws.tensor.support._spying import spying

#: How large a step is, of the largest element, and how near its slope then is.
_STEP, _NEAR = 1e-3, 2e-2


def misplaced(trial: Trial, inputs: Inputs, name: str) -> Reason | None:
    """Return at whose place backward hands out the gradient of an argument that gets none at its own."""
    found: Reason | None = quietly(lambda: _misplaced(trial, inputs, name))
    return found


def _misplaced(trial: Trial, inputs: Inputs, name: str) -> Reason | None:
    behind = classes_behind(outputs(trial.spec.function(*inputs.args(inputs.leaves()))))
    if len(behind) != 1 or is_of_operator(behind[0]):
        return None
    v = like(outputs(trial.spec.function(*inputs.args())), trial.seed)
    with spying(behind[0], "backward") as calls:
        vjp(trial.spec.function, inputs, v)
    shape = inputs.values[name].shape
    for _, returned in calls:
        if len(returned) != len(inputs.values) or returned[list(inputs.values).index(name)] is not None:
            return None
        for (other, value), given in zip(inputs.values.items(), returned, strict=True):
            if differentiable(value) or not isinstance(given, Tensor) or given.shape != shape or not bool(given.any()):
                continue
            if _is_derivative(trial, inputs, name, v, given):
                said = f"backward returns the gradient of `{name}` at the place of `{other}`, which takes none"
                return Reason(kind="misplaced", words=said, evidence={"argument": name, "place": other})
    return None


def _is_derivative(trial: Trial, inputs: Inputs, name: str, v: tuple[Tensor, ...], given: Tensor) -> bool:
    """Whether a tensor is the derivative of forward with respect to an argument, along a direction."""
    x = inputs.values[name].detach()
    (u,) = like((x,), trial.seed + 1)
    step = _STEP * float(x.abs().max() or 1) / float(u.abs().max())

    def along(h: float) -> float:
        y = outputs(trial.spec.function(*inputs.args({name: x + h * u})))
        return sum(float((w.conj() * t.detach()).sum().real) for w, t in zip(v, y, strict=True))

    slope = (along(step) - along(-step)) / (2 * step)
    return math.isclose(slope, float((given.conj() * u).sum().real), rel_tol=_NEAR)
