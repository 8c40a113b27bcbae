r"""Only what is declared to draw draws random numbers, in forward, from torch's generator of its device.

Declared is the form that draws the noise of a function that takes it; a function with `noise="replayed"`; and one whose
primal draws itself. A backward may draw where the surrogate or the declared gradient draws more than the primal does.

The law checks a plain pass, a pass with a tangent, and a differentiated backward pass, if these are promised.

Why it matters: a draw that nobody declared changes every number drawn after it, and torch's checkpointing and its
data loaders rewind no other generator.

What breaks it: a draw in a function that is not declared to draw, a draw in backward, whose gradient belongs to another
draw than the output, numpy or python's random, a generator or state that the function keeps, a number of draws that
depends on whether a gradient is needed, a backward that winds a generator back and leaves it there.

Remedy: write `noise="replayed"` in the spec, and let its primal draw as forward does; or take the noise as an argument.
Draw all of it in forward, and keep on ctx what backward needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from gradspec.law import HOLDS, Finding, Law, Status, Trial, broken
from gradspec.laws.tensor._surrogate import SURROGATE
from gradspec.laws.tensor._vjp import VJP
from gradspec.laws.tensor.support._call import Inputs, gradients, like, outputs
from gradspec.laws.tensor.support._compare import compare, compare_all
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._generators import (
    NUMPY,
    PYTHON,
    draw_from_all,
    given_noise,
    has_batch,
    moved,
    of_device,
    seeded,
    states,
    without_noise,
)
from gradspec.laws.tensor.support._held_still import Backward
from gradspec.laws.tensor.support._passes import PLAIN, Pass, in_each_pass
from gradspec.laws.tensor.support._reference import is_audited, is_stand_in
from gradspec.laws.tensor.support._replay import awake, drawn_behind, own_generators, replayed
from gradspec.laws.tensor.support._written import line_of_the_user, with_memory
from gradspec.spec._gradient import gradient_of

#: What is wrong with a backward that draws the noise of forward for itself.
ANEW = "backward draws noise anew: the gradient belongs to another draw than the output"
KEEP = "keep the mask, the noise or the state of the generator on ctx, and use it in backward"
#: How a gradient that a spec declares says that backward is meant to draw for itself.
DRAW_FIRST = "or, if it is meant to draw numbers of its own, let `gradient` of the spec draw first what forward draws"
#: What is wrong with a draw that torch could rewind.
UNDECLARED = "which is not declared"
#: What is wrong with a function that gives another result from the same state of every generator.
OWN = "two calls from one state of the generators differ: forward draws from one of its own, or keeps state"
TAKE = "draw from torch's generator, or take the generator, or the state, as an argument"
#: What a spec says of a function that draws inside.
DECLARE = (
    'write `noise="replayed",` in the FunctionSpec, and draw in its primal and surrogate as forward does, in the same '
    'order: calls are then compared with the same draws; see "Specify a random function" in the how-to pages'
)
REWOUND = "backward leaves {0} where forward had it: what was drawn in between is drawn again"
RESTORE = "keep the state before backward winds it back, and put that one back at its end"
SEEDS = "forward seeds the generator: its state after a call is the same whatever it was before"


def _check(trial: Trial) -> Finding:
    trial, noise = awake(trial), given_noise(trial)
    may = own_generators(trial)
    finding = in_each_pass(trial, lambda way: _draws(trial, trial.spec.function, Inputs.of(trial), "", may, way))
    if finding is HOLDS:
        finding = _repeats(trial)
    if finding is not HOLDS:
        return finding
    if noise is None or not has_batch(without_noise(trial)):
        return HOLDS
    inputs = without_noise(trial)
    tensors = [value for value in inputs.values.values() if isinstance(value, Tensor)]
    own = of_device(tensors[0].device if tensors else torch.device(trial.profile.device))
    drawing = noise.drawing
    finding = in_each_pass(trial, lambda way: _draws(trial, drawing, inputs, "in the form that draws, ", (own,), way))
    if finding is not HOLDS or not all(t.numel() for t in tensors):
        return finding
    with seeded(trial.seed):
        before = states()
        drawing(*inputs.args())
        if own not in moved(before, states()):
            return broken(f"the form that draws does not draw from {own}", likely="it has a generator of its own")
    return HOLDS


def _repeats(trial: Trial) -> Finding:
    """Judge two calls from one state of all generators, those among the arguments included."""
    function, inputs = replayed(trial).spec.function, Inputs.of(trial)
    with torch.no_grad():
        calls = [outputs(function(*inputs.args())) for _ in range(2)]
    for one, other in zip(*calls, strict=True):
        if isinstance(one, Tensor) and (found := compare(trial, "the second", other, one)) is not HOLDS:
            return replace(found, message=OWN, likely=TAKE, reason=None, details={**found.details, "state": "its own"})
    return HOLDS


def _draws(
    trial: Trial, function: Callable[..., Any], inputs: Inputs, form: str, may: Sequence[str], way: Pass
) -> Finding:
    """Judge one form of the function, which may draw from some generators in forward."""
    leaves = way.leaves(inputs)
    args = way.args(inputs, leaves, seed=trial.seed)
    with seeded(trial.seed):
        start = states()
        y = outputs(function(*args))
        after = states()
        drawn = moved(start, after)
        if hidden := [name for name in drawn if name not in may]:
            likely = _declare(hidden) if way is PLAIN else ""
            if _seeds(trial, function, inputs, hidden[0]):
                likely = SEEDS
            said = f"{form}forward draws from {hidden[0]}, {_why(hidden[0])}"
            return broken(said, got=", ".join(hidden), likely=likely)
        draw_from_all(1)
        between = states()
        way.backward(y, leaves, trial.seed)
        left = states()
        is_aside = bool(drawn) and way is PLAIN and not form and quietly(lambda: _draws_aside(trial, function, inputs))
        if hidden := moved(between, left) or (drawn if is_aside else []):
            if rewound := _rewinds(trial, function, inputs, way, hidden, left):
                return rewound
            found = _of_backward(trial, form, hidden, is_anew=bool(drawn) and not form)
            is_named = found is HOLDS or found.likely
            return found if is_named else replace(found, likely=_drawn_by(trial, function, inputs, way))
        if drawn and not form and _seeds(trial, function, inputs, drawn[0]):
            return broken(f"forward seeds {drawn[0]}: each call draws the same", got=drawn[0], likely=SEEDS)
    if way is not PLAIN:
        return HOLDS
    with seeded(trial.seed), torch.no_grad():
        function(*inputs.args())
        if differing := moved(after, states()):
            return broken(f"{form}{differing[0]} gives another count of numbers under no_grad than with a gradient")
    return HOLDS


def _draws_aside(trial: Trial, function: Callable[..., Any], inputs: Inputs) -> bool:
    """Whether backward draws and puts the generators back, as `fork_rng` does: its gradient moves with their state."""
    found = []
    for count in (1, 2):
        with seeded(trial.seed):
            leaves = inputs.leaves()
            y = outputs(function(*inputs.args(leaves)))
            draw_from_all(count)
            found.append(gradients(y, leaves, like(y, trial.seed)))
    return compare_all(trial, "gradient", *found) is not HOLDS


def _rewinds(
    trial: Trial,
    function: Callable[..., Any],
    inputs: Inputs,
    way: Pass,
    hidden: Sequence[str],
    left: Mapping[str, bytes],
) -> Finding | None:
    """Judge a backward that leaves a generator in one state, however many numbers were drawn since forward."""
    with seeded(trial.seed):
        leaves = way.leaves(inputs)
        y = outputs(function(*way.args(inputs, leaves, seed=trial.seed)))
        draw_from_all(2)
        way.backward(y, leaves, trial.seed)
        same = [name for name in hidden if left[name] == states()[name]]
    return broken(REWOUND.format(same[0]), got=", ".join(same), likely=RESTORE) if same else None


def _of_backward(trial: Trial, form: str, hidden: Sequence[str], *, is_anew: bool) -> Finding:
    """Judge the draws of backward: those that the gradient of the spec draws too, those of forward again, or others."""
    if not form and {*hidden} <= {*drawn_behind(trial)}:
        return HOLDS  # `vjp` says whether they are used alike
    if is_anew and _is_right(trial, "after"):
        return HOLDS
    if is_anew and _is_right(trial, "alike"):
        is_own = gradient_of(trial.spec.surrogate) is not None and _is_right(trial, "after", "after")
        return broken(ANEW, got=", ".join(hidden), likely=f"{KEEP}; {DRAW_FIRST}" if is_own else KEEP)
    why = _why(hidden[0])
    if why == UNDECLARED and is_audited(trial.spec):  # there is no spec that could declare it
        moves = quietly(lambda: _draws_aside(trial, trial.spec.function, Inputs.of(trial)))
        why = "and each backward pass of a call gives another gradient" if moves else why
    return broken(f"{form}backward draws from {hidden[0]}, {why}", got=", ".join(hidden))


def _drawn_by(trial: Trial, function: Callable[..., Any], inputs: Inputs, way: Pass) -> str:
    """Return the operation of backward that draws first, and its line; empty of what is not torch's."""
    leaves = way.leaves(inputs)
    y = outputs(function(*way.args(inputs, leaves, seed=trial.seed)))
    drawing = _Draws()  # type: ignore[no-untyped-call]
    with drawing:
        way.backward(y, leaves, trial.seed)
    return str(drawing.first)


class _Draws(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types here
    """Notes the first operation that moves torch's generator."""

    first: str = ""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        before = torch.get_rng_state()
        made = with_memory(func)(*args, **(kwargs or {}))
        if not self.first and not torch.equal(before, torch.get_rng_state()):
            self.first = f"{str(func).rpartition('.')[0]} draws ({line_of_the_user()})"
        return made


def _is_right(trial: Trial, backward: Backward, declared: Backward = "alike") -> bool:
    """Whether the gradient is the declared one if backward draws the numbers after those of forward, or the same."""
    law = SURROGATE if is_stand_in(trial.spec.surrogate) else VJP
    found = quietly(lambda: law.check(replayed(trial, backward, declared)))
    return found is not None and found.status is Status.HOLDS


def _declare(hidden: Sequence[str]) -> str:
    """Return how a draw is declared; of a generator that torch does not rewind, what to draw from instead."""
    if hidden[0] in (NUMPY, PYTHON):
        return f"draw from torch's generator: no spec can declare {hidden[0]}"
    return DECLARE


def _why(name: str) -> str:
    """Return what is wrong with a draw from a generator: of one that torch does not rewind no declaration helps."""
    return "which no checkpoint of torch rewinds" if name in (NUMPY, PYTHON) else UNDECLARED


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
