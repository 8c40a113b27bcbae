"""Repeat a law with all draws fixed: a violation that disappears then is caused by noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gradspec.explain._follows import SETTLED, Explained, found_by
from gradspec.explain._mended import by_itself
from gradspec.law import Finding, Law, Status, Trial
from gradspec.laws.tensor._declared_draws import DECLARED_DRAWS
from gradspec.laws.tensor._replayed import REPLAYED
from gradspec.laws.tensor.support._call import Inputs, outputs
from gradspec.laws.tensor.support._generators import moved, states
from gradspec.laws.tensor.support._replay import awake, replayed

#: What is said of a law that cannot be asked while the noise is held still.
INCOMPARABLE = "the function draws noise that is not declared (declared_draws), and two calls of it do not compare"


def beside_noise(law: Law, trial: Callable[[], Trial], finding: Finding) -> Explained | None:
    """Return what is left of a finding once all draws are the same; None where the function draws no hidden noise.

    Args:
        law: what is broken, or cannot tell.
        trial: makes a new trial.
        finding: what the law found.
    """
    if (law.family == "randomness" and law.name != REPLAYED.name) or law.alone or "raised" in finding.details:
        return None
    draws = found_by(DECLARED_DRAWS, trial)
    if draws.status is not Status.BROKEN or "raised" in draws.details:
        return None
    if "state" in draws.details:
        if finding.status is Status.BROKEN:
            return Explained(finding, DECLARED_DRAWS)
        return Explained(Finding(status=Status.NOT_MEASURED, message=INCOMPARABLE))
    if law.family == "randomness":
        return None
    left = found_by(law, lambda: still(trial()))
    if left.status in SETTLED and finding.status is Status.BROKEN:
        return Explained(finding, DECLARED_DRAWS)
    # Other strides draw the same numbers for other elements: the function is at odds with itself then, noise or not.
    of_itself = found_by(law, lambda: by_itself(still(trial())))
    if of_itself.status in SETTLED and finding.status is Status.BROKEN and _is_other(trial):
        return Explained(finding, DECLARED_DRAWS)
    is_at_odds = "vjp" in law.requires and bool(left.index) and of_itself.status is Status.BROKEN
    if left.status is Status.BROKEN and "raised" not in left.details and not is_at_odds:
        return Explained(left, trial=lambda: still(trial()))
    return Explained(Finding(status=Status.NOT_MEASURED, message=INCOMPARABLE))


def is_of_noise(law: Law) -> bool:
    """Return whether a law says itself that a function draws noise: it follows from no other."""
    return law.name == DECLARED_DRAWS.name


def still(trial: Trial) -> Trial:
    """Return the trial of a function that draws the same numbers at each call, and so does what it is compared with."""
    return replayed(trial, "alike")


def _is_other(trial: Callable[[], Trial]) -> bool:
    """Whether the value of the function moves with its draws, and the primal draws from other generators, or none."""

    def drawn(role: str) -> tuple[list[str], tuple[Any, ...]]:
        one = awake(trial())
        inputs, before = Inputs.of(one), states()
        y = outputs(getattr(one.spec, role)(*inputs.args()))
        return moved(before, states()), y

    (ours, first), (_, second) = drawn("function"), drawn("function")
    return not all(map(torch.equal, first, second)) and ours != drawn("primal")[0]
