"""Whether a gradient that is None stands at the place of another argument, which takes none."""

from __future__ import annotations

from torch import Tensor

from gradspec.law import Reason, Trial
from gradspec.laws.tensor.support._call import Inputs, differentiable, outputs, vjp
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._graph import classes_behind, is_of_operator
from gradspec.laws.tensor.support._spying import spying


def misplaced(trial: Trial, inputs: Inputs, name: str) -> Reason | None:
    """Return at whose place backward hands out a tensor of the shape of an argument whose gradient it leaves out."""
    found: Reason | None = quietly(lambda: _misplaced(trial, inputs, name))
    return found


def _misplaced(trial: Trial, inputs: Inputs, name: str) -> Reason | None:
    behind = classes_behind(outputs(trial.spec.function(*inputs.args(inputs.leaves()))))
    if len(behind) != 1 or is_of_operator(behind[0]):
        return None
    with spying(behind[0], "backward") as calls:
        vjp(trial.spec.function, inputs)
    shape = inputs.values[name].shape
    for _, returned in calls:
        if len(returned) != len(inputs.values) or returned[list(inputs.values).index(name)] is not None:
            return None
        for (other, value), given in zip(inputs.values.items(), returned, strict=True):
            if not differentiable(value) and isinstance(given, Tensor) and given.shape == shape and bool(given.any()):
                said = f"backward returns a tensor of the shape of `{name}` at the place of `{other}`, which takes none"
                return Reason(kind="misplaced", words=said, evidence={"argument": name, "place": other})
    return None
