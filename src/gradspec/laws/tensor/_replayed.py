r"""From one state of the generators come one value and one gradient, however often backward and recomputation run.

Why it matters: a run that cannot be repeated cannot be debugged, and under checkpointing the gradient of one draw is
applied to the value of another.

What breaks it: noise drawn again in backward, a generator of the function's own, the time of day.

Remedy: draw all noise in forward from torch's generator, and save what backward needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable
from gradspec.laws.tensor.support._call import Inputs, gradients, like, outputs
from gradspec.laws.tensor.support._compare import compare, compare_all, is_one
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._generators import (
    NUMPY,
    PYTHON,
    given_noise,
    has_batch,
    moved,
    seed_all,
    seeded,
    states,
    without_noise,
)
from gradspec.laws.tensor.support._held_still import held_still
from gradspec.laws.tensor.support._replay import draws_inside, given_states


def _check(trial: Trial) -> Finding:
    noise, inputs = given_noise(trial), without_noise(trial)
    if noise is None and not draws_inside(trial):
        return not_applicable("the spec declares no noise")
    if noise is not None and not has_batch(inputs):
        return not_applicable("no floating-point input with a batch in this case")
    drawing = _drawing_inside(trial) if noise is None else noise.drawing

    def recomputed(*args: Any) -> Any:
        return checkpoint(drawing, *args, use_reentrant=False)

    first = _run(trial, drawing, inputs)
    again = _run(trial, drawing, inputs)
    under = _run(trial, recomputed, inputs, twice=False)
    function = trial.spec.function if noise is None else noise.drawing
    rows = (
        ("in a second call from the same state of the generators", again, _own_generator),
        ("under checkpointing", under, _not_rewound),
    )
    for when, (y, x_bar, x_bar_2), why in rows:
        for mine, theirs in zip(y, first[0], strict=True):
            if (finding := compare(trial, f"value {when}", mine, theirs)) is not HOLDS:
                return _because(finding, quietly(lambda: why(trial, function, inputs)))  # noqa: B023  # called at once
        if (finding := compare_all(trial, f"gradient {when}", x_bar, first[1])) is not HOLDS:
            return _because(finding, quietly(lambda: why(trial, function, inputs)))  # noqa: B023  # the same
        what = "gradient in a second backward pass over one graph"
        if (finding := compare_all(trial, what, x_bar_2, x_bar)) is not HOLDS:
            return _because(finding, quietly(lambda: _draws_anew(trial, function, inputs)))
    return HOLDS


def _because(finding: Finding, said: str | None) -> Finding:
    return replace(finding, likely=said, reason=None) if said else finding


class _Generators(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types here
    """Sees the generators from which operations draw that are told of one."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: set[torch.Generator] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen |= {value for value in (*args, *(kwargs or {}).values()) if isinstance(value, torch.Generator)}
        return func(*args, **(kwargs or {}))


def _own_generator(trial: Trial, function: Callable[..., Any], inputs: Inputs) -> str:
    """Say that the function draws from a generator which is neither torch's own nor an argument."""
    leaves = inputs.leaves()
    with _Generators() as mode:
        y = outputs(function(*inputs.args(leaves)))
    v = like(y, trial.seed)  # with a generator of our own
    with mode:
        gradients(y, leaves, v)
    return "a generator that torch does not seed" if mode.seen - given_states(trial).keys() else ""


def _not_rewound(trial: Trial, function: Callable[..., Any], inputs: Inputs) -> str:
    """Say that forward draws from a generator which is not torch's."""
    with seeded(trial.seed):
        before = states()
        function(*inputs.args(inputs.leaves()))
        drawn = [name for name in moved(before, states()) if name in (NUMPY, PYTHON)]
    return f"forward draws from {' and '.join(drawn)}, which checkpointing does not rewind" if drawn else ""


def _draws_anew(trial: Trial, function: Callable[..., Any], inputs: Inputs) -> str:
    """Say that backward gives one gradient where each pass finds the generators in one state, and else another."""
    with seeded(trial.seed):
        leaves = inputs.leaves()
        y = outputs(function(*inputs.args(leaves)))
        found = []
        for seed in (1, 1, 2):
            seed_all(trial.seed + seed)
            found.append(gradients(y, leaves, like(y, trial.seed), retain_graph=True))
    return "backward draws anew" if is_one(found[0], found[1], but=found[2]) else ""


def _drawing_inside(trial: Trial) -> Callable[..., Any]:
    """Return the function, whose backward goes on where forward has ended, and which finds a generator as it was."""
    function, given = trial.spec.function, given_states(trial)
    return held_still(function, trial.seed, forward=False, backward="after", given=given)


Gradients = dict[str, Tensor | None]


def _run(
    trial: Trial, function: Callable[..., Any], inputs: Inputs, *, twice: bool = True
) -> tuple[tuple[Tensor, ...], Gradients, Gradients]:
    """Return the value and the gradients of one backward pass and of a second one over the same graph."""
    with seeded(trial.seed):
        leaves = inputs.leaves()
        y = outputs(function(*inputs.args(leaves)))
        v = like(y, trial.seed)
        first = gradients(y, leaves, v, retain_graph=twice)
        return y, first, gradients(y, leaves, v) if twice else first


REPLAYED = Law(
    name="replayed",
    family="randomness",
    statement=r"F(x;\,\omega),\ B(v;\,\omega) \text{ are functions of the generator's state } \omega",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
    needs_spec=True,
)
