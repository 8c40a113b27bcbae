r"""Only the form that is declared to draw draws random numbers, in forward, from torch's generator of its device.

The law checks a plain pass, a pass with a tangent, and a differentiated backward pass, if these are promised.

Why it matters: a draw that nobody declared changes every number drawn after it, and torch's checkpointing and its
data loaders rewind no other generator.

What breaks it: a draw in the function whose noise is given, a draw in backward, numpy or python's random, a number of
draws that depends on whether a gradient is needed.

Remedy: take the noise as an argument, and draw it in one public form, all of it in forward.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Trial, broken
from gradspec.laws.tensor.support._call import Inputs, outputs
from gradspec.laws.tensor.support._generators import has_batch, moved, of_device, seeded, states, without_noise
from gradspec.laws.tensor.support._passes import PLAIN, Pass, in_each_pass

SEEDS = "forward seeds the generator: its state after a call is the same whatever it was before"


def _check(trial: Trial) -> Finding:
    finding = in_each_pass(trial, lambda way: _draws(trial, trial.spec.function, Inputs.of(trial), "", None, way))
    if finding is not HOLDS:
        return finding
    if trial.spec.noise is None or not has_batch(without_noise(trial)):
        return HOLDS
    inputs = without_noise(trial)
    tensors = [value for value in inputs.values.values() if isinstance(value, Tensor)]
    own = of_device(tensors[0].device if tensors else torch.device(trial.profile.device))
    drawing = trial.spec.noise.drawing
    finding = in_each_pass(trial, lambda way: _draws(trial, drawing, inputs, "in the form that draws, ", own, way))
    if finding is not HOLDS or not all(t.numel() for t in tensors):
        return finding
    with seeded(trial.seed):
        before = states()
        drawing(*inputs.args())
        if own not in moved(before, states()):
            return broken(f"the form that draws does not draw from {own}", likely="it has a generator of its own")
    return HOLDS


def _draws(
    trial: Trial, function: Callable[..., Any], inputs: Inputs, form: str, own: str | None, way: Pass
) -> Finding:
    """Judge one form of the function, which may draw from the generator `own` in forward."""
    leaves = way.leaves(inputs)
    args = way.args(inputs, leaves, seed=trial.seed)
    with seeded(trial.seed):
        start = states()
        y = outputs(function(*args))
        after = states()
        if hidden := [name for name in moved(start, after) if name != own]:
            likely = SEEDS if _seeds(trial, function, inputs, hidden[0]) else ""
            said = f"{form}forward draws from {hidden[0]}, which is not declared"
            return broken(said, got=", ".join(hidden), likely=likely)
        way.backward(y, leaves, trial.seed)
        if hidden := moved(after, states()):
            return broken(f"{form}backward draws from {hidden[0]}, which is not declared", got=", ".join(hidden))
    if way is not PLAIN:
        return HOLDS
    with seeded(trial.seed), torch.no_grad():
        function(*inputs.args())
        if differing := moved(after, states()):
            return broken(f"{form}{differing[0]} gives another count of numbers under no_grad than with a gradient")
    return HOLDS


def _seeds(trial: Trial, function: Callable[..., Any], inputs: Inputs, name: str) -> bool:
    """Whether a generator is in one state after a call, whatever state it was in before."""
    after = []
    for seed in (trial.seed, trial.seed + 1):
        with seeded(seed):
            function(*inputs.args())
            after.append(states()[name])
    return after[0] == after[1]


DECLARED_DRAWS = Law(
    name="declared_draws",
    family="randomness",
    statement=r"\text{generators moved by } F = \text{declared}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
)
