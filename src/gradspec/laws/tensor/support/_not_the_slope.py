"""What is said of a derivative that is not the numerical one: of a surrogate, or of backward."""

from __future__ import annotations

from gradspec._finding import MEANT
from gradspec.law import Finding, Trial, broken
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._differences import Slope
from gradspec.laws.tensor.support._graph import classes_behind
from gradspec.laws.tensor.support._reference import is_stand_in

_MEANT = (
    "if it is, as in a straight-through estimator or a clipped gradient, say what it is: the option `surrogate` or "
    "`gradient` of an audit, a check or a spec"
)


def not_the_slope(trial: Trial, inputs: Inputs, got: str, numeric: Slope) -> Finding:
    """Return the finding: of a surrogate with the Functions that it calls, whose backward it is that was asked."""
    if not is_stand_in(trial.spec.surrogate):
        return broken(
            "the surrogate's autograd derivative is not its numerical one",
            argument="directional derivative of the surrogate",
            got=got,
            expected=str(numeric),
            likely=quietly(lambda: _called(trial, inputs)) or "",
        )
    return broken(
        "backward does not apply the derivative of what forward computes",
        argument="directional derivative",
        got=got,
        expected=str(numeric),
        details={MEANT: _MEANT},
    )


def _called(trial: Trial, inputs: Inputs) -> str:
    names = [f"`{one.__name__}`" for one in classes_behind(trial.spec.surrogate(*inputs.args(inputs.leaves())))]
    return f"the surrogate calls {' and '.join(names)}: that backward is held to differences here" if names else ""
