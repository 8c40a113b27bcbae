"""The question of a law whether a gradient is meant, and what is wrong whatever the answer is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

from gradspec._finding import ASIDE
from gradspec._one_line import listed
from gradspec.law import HOLDS, Finding, Status, Trial
from gradspec.laws.tensor.support._call import Inputs, outputs, vjp
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._meant import Asked, asked_about, flat_outputs, jumping
from gradspec.laws.tensor.support._statistics import of_statistics
from gradspec.laws.tensor.support._still_state import holds_state_still

#: Holds the gradients of some arguments to the derivative of forward.
Judge = Callable[[Trial, Inputs], Finding]
#: How far away nothing is rounded between the ends of a range.
_FAR = 1e4


def question(trial: Trial, inputs: Inputs, judged: Judge) -> Finding | None:
    """Return the question whether a gradient is meant, unless another one is wrong: that no answer makes right.

    A gradient that holds still what a module in training keeps holds.

    Args:
        trial: the call.
        inputs: its arguments.
        judged: holds the gradients of some arguments to the derivative of forward.
    """
    if quietly(lambda: holds_state_still(trial, inputs, judged)):
        return HOLDS
    asked = asked_about(trial, inputs)
    if asked is None:
        return _of_outputs(trial, inputs, judged) or quietly(lambda: of_statistics(trial, inputs, judged))
    if asked.may_be_right:
        wrong_alone = [name for name in asked.names if _broken(trial, replace(inputs, wrt=(name,)), judged)]
        asked = replace(asked, names=tuple(wrong_alone) or asked.names)
    others = _without(inputs, asked.names)
    wrong = _broken(trial, others, judged)
    if wrong is not None and (jumps := jumping(trial, others)):
        asked, others = replace(asked, jumping=jumps), _without(others, jumps)
        wrong = _broken(trial, others, judged)
    if wrong is None:
        return quietly(lambda: _lost_far_away(trial, inputs, asked, judged)) or asked.finding
    names = [*asked.names, *asked.jumping]
    return question(trial, others, judged) or replace(wrong, details={**wrong.details, ASIDE: names})


def _lost_far_away(trial: Trial, inputs: Inputs, asked: Asked, judged: Judge) -> Finding | None:
    """Return the finding that a gradient is zero where nothing jumps and forward moves: behind the ends of a range.

    What an author scales, as that of a learned step, is there; what a mask has forgotten is not.
    """
    for side in (-_FAR, _FAR):
        away = {name: inputs.values[name] + side for name in asked.names}
        far = Inputs({**inputs.values, **away}, inputs.wrt)
        still = _without(far, asked.names)
        if not still.wrt or jumping(trial, still):
            continue
        found = vjp(trial.spec.surrogate, far, seed=trial.seed)
        for name in still.wrt:
            if (gradient := found[name]) is None or bool(gradient.any()):
                continue
            if (wrong := _broken(trial, replace(still, wrt=(name,)), judged)) is not None:
                where = f"{listed(asked.names)} is far {'below' if side < 0 else 'above'} and nothing jumps"
                message = f"backward returns zeros for `{name}` where {where}, and the output moves with it"
                return replace(wrong, message=message, details={**wrong.details, ASIDE: list(inputs.wrt)})
    return None


def _broken(trial: Trial, inputs: Inputs, judged: Judge) -> Finding | None:
    """Return the finding that a gradient of these arguments is wrong."""
    finding = judged(trial, inputs) if inputs.wrt else HOLDS
    return finding if finding.status is Status.BROKEN else None


def _of_outputs(trial: Trial, inputs: Inputs, judged: Judge) -> Finding | None:
    """Return the question of a function of which some outputs are steps, and the gradient through the others right."""
    if not (steps := quietly(lambda: flat_outputs(trial, inputs))):
        return None

    @wraps(trial.spec.surrogate)
    def others(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        y = outputs(trial.spec.surrogate(*args, **kwargs))
        return tuple(t for place, t in enumerate(y) if place not in steps)

    rest = replace(trial, spec=replace(trial.spec, surrogate=others))
    is_wrong = _broken(rest, inputs, judged) is not None
    if is_wrong and not jumping(rest, inputs):
        return None
    why = f"Output {' and '.join(map(str, steps))} is flat nearly everywhere, where a derivative is 0."
    return Asked(names=inputs.wrt, why=f"{why} The others jump." if is_wrong else why).finding


def _without(inputs: Inputs, names: tuple[str, ...]) -> Inputs:
    return replace(inputs, wrt=tuple(name for name in inputs.wrt if name not in names))
