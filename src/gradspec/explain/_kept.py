"""Whether forward keeps for backward what it computed itself: a number that knows no graph in a second derivative."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from gradspec.law import Reason, Trial
from gradspec.laws.tensor.support._call import Inputs, differentiable
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._generators import seeded
from gradspec.laws.tensor.support._graph import nodes_behind, tensors_in
from gradspec.laws.tensor.support._memory import overlap

#: What is said of a derivative that is not there.
CUT = Reason(
    kind="cut",
    words="backward, or a Function that it calls, is cut from the graph: look for .data, detach(), numpy or a None",
)
#: What is said where backward is right in its cotangent, and not in the arguments, and keeps what forward computes.
KEPT = Reason(
    kind="kept",
    words="backward uses a result of forward, which knows no graph there: "
    "save the arguments, and compute it in backward",
)
#: How far arguments move, as a part of 1 and in random directions, to see whether what is kept depends on them.
STEP = 2.0**-10


def why_cut(trial: Trial, inputs: Inputs) -> Reason:
    """Return why a derivative of backward with respect to an argument is not there, if that to its cotangent is."""
    return KEPT if quietly(lambda: keeps_an_intermediate(trial, inputs)) else CUT


def keeps_an_intermediate(trial: Trial, inputs: Inputs) -> bool:
    """Whether a Function keeps a number of its forward that moves with the arguments, and that no graph leads to."""
    here, beside = (list(_kept(trial, inputs, step)) for step in (0.0, STEP))
    return [t.shape for t in here] != [t.shape for t in beside] or not all(map(torch.equal, here, beside))


def _kept(trial: Trial, inputs: Inputs, step: float) -> Iterator[Tensor]:
    leaves = inputs.leaves()
    with seeded(trial.seed):
        with torch.no_grad():
            for leaf in leaves.values():
                leaf.add_(torch.randn_like(leaf), alpha=step)
        y = trial.spec.function(*inputs.args(leaves))
    known = [t for t in (*inputs.args(leaves), *leaves.values()) if isinstance(t, Tensor)]
    for node in nodes_behind(y):
        if hasattr(node, "_forward_cls"):
            kept = (*tensors_in(tuple(node.saved_tensors)), *tensors_in(dict(node.__dict__)))
            yield from (
                t for t in kept if differentiable(t) and not t.requires_grad and not any(overlap(t, a) for a in known)
            )
