"""Whether a gradient is off by as little as forward itself is, as an iteration that stops at a tolerance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from torch import Tensor

from gradspec.law import Finding, Rank, Trial
from gradspec.laws.tensor.support._bounded import Bounded
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._compare import UNSEEN
from gradspec.laws.tensor.support._jumps import jump_of

#: How far off, of itself, a gradient may be of which the tolerance of an iteration is the cause.
_MOST = 1e-2
#: What to do about that.
REMEDY = "declare it: accuracy=Accuracy(rtol=...) in a spec, --accuracy rtol=... of an audit"


def at_a_tolerance(
    finding: Finding,
    trial: Trial,
    inputs: Inputs,
    u: tuple[Tensor, ...],
    is_right: Callable[[Inputs], bool],
    off: float,
) -> Finding | None:
    """Return a finding that is not a mistake: the gradient is right for a smaller tolerance, a number of the call.

    With a smaller tolerance an iteration takes more operations, which a constant as `eps` does not.

    Args:
        finding: what is said otherwise.
        trial: the call.
        inputs: its arguments.
        u: the direction along which it was asked.
        is_right: whether the gradient is right for other arguments.
        off: by how much of itself it is off.
    """

    def operations(given: Inputs) -> int:
        moved = {name: given.values[name] + step for name, step in zip(given.wrt, u, strict=True)}
        with Bounded() as counted:
            trial.spec.function(*given.args(moved))
        return int(counted.count)

    for name, value in inputs.values.items() if off <= _MOST else ():
        if type(value) is float and 0 < value <= _MOST:
            smaller = Inputs({**inputs.values, name: value / 1000}, inputs.wrt)
            if operations(smaller) > operations(inputs) and is_right(smaller):
                said = f"the gradient is off by {off:.1g} of itself, and right for a smaller `{name}`"
                return replace(finding, message=f"{said}, at which forward stops", likely=REMEDY, rank=Rank.WASTE)
    return None


def of_a_solver(
    finding: Finding, lines: Sequence[Callable[[float], float]], error: float, derivative: float, size: float
) -> Finding:
    """Return a finding that is not a mistake: forward itself is as inexact as the gradient is wrong.

    An iteration that stops at a tolerance jumps where the number of its steps changes, and its gradient, that of the
    limit, differs from the derivative of what it returns by as little.

    Args:
        finding: what is said otherwise.
        lines: forward, weighted with a cotangent, as a function of a step in some directions.
        error: by how much the gradient is off.
        derivative: how large it is.
        size: of the numbers that are added up to the value.
    """
    if error <= derivative * UNSEEN:
        return replace(finding, message=f"{finding.message}, in digits that float32 does not hold", rank=Rank.WASTE)
    if error > _MOST * derivative:
        return finding
    jump = next(filter(None, (jump_of(along, size=size, least=error / 64) for along in lines)), 0.0)
    if not jump or error > 64 * jump:
        return finding
    said = (
        f"the gradient is off by {error / derivative:.1g} of itself, and forward is no more exact: it jumps by "
        f"{jump:.1g} between close arguments, as an iteration that stops at a tolerance"
    )
    return replace(finding, message=said, likely=REMEDY, rank=Rank.WASTE)
