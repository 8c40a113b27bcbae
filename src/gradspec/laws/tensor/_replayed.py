r"""From one state of the generators come one value and one gradient, however often backward and recomputation run.

Why it matters: a run that cannot be repeated cannot be debugged, and under checkpointing the gradient of one draw is
applied to the value of another.

What breaks it: noise drawn again in backward, a generator of the function's own, the time of day.

Remedy: draw all noise in forward from torch's generator, and save what backward needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.utils.checkpoint import checkpoint

from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable
from gradspec.laws.tensor.support._call import Inputs, gradients, like, outputs
from gradspec.laws.tensor.support._compare import compare, compare_all
from gradspec.laws.tensor.support._generators import given_noise, has_batch, seeded, without_noise
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
    rows = (
        ("in a second call from the same state of the generators", again, "a generator that torch does not seed"),
        ("under checkpointing", under, "a generator that checkpointing does not rewind"),
    )
    for when, (y, x_bar, x_bar_2), likely in rows:
        for mine, theirs in zip(y, first[0], strict=True):
            if (finding := compare(trial, f"value {when}", mine, theirs, likely=likely)) is not HOLDS:
                return finding
        if (finding := compare_all(trial, f"gradient {when}", x_bar, first[1], likely=likely)) is not HOLDS:
            return finding
        what = "gradient in a second backward pass over one graph"
        if (finding := compare_all(trial, what, x_bar_2, x_bar, likely="backward draws anew")) is not HOLDS:
            return finding
    return HOLDS


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
