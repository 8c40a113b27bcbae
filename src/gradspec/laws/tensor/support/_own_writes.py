"""Writes of forward to arguments that no caller trips over: the primal makes them too, or nothing reads what was there.

A normalisation in training is handed its running statistics, and moves them as `torch.nn.functional.batch_norm` does.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from gradspec.law import HOLDS, Trial
from gradspec.laws.tensor.support._call import Inputs, differentiable, gradients, like, outputs
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._generators import seeded
from gradspec.laws.tensor.support._memory import snapshots
from gradspec.laws.tensor.support._reference import is_stand_in, on_spec_side


def left_by_primal(trial: Trial, inputs: Inputs) -> dict[str, Tensor]:
    """Return what the primal leaves in the arguments that it writes to; none in an audit without a reference."""
    if is_stand_in(trial.spec.primal):
        return {}
    args = inputs.args()
    given = {name: arg for name, arg in zip(inputs.values, args, strict=True) if isinstance(arg, Tensor)}
    before = snapshots(given)
    with torch.no_grad():
        on_spec_side("primal", trial.spec.primal, *args)
    return {name: tensor for name, tensor in given.items() if not before[name].has_bits_of(tensor)}


def is_read(trial: Trial, inputs: Inputs, name: str) -> bool:
    """Whether a value or a gradient depends on the numbers of an argument; other integers may not be allowed."""
    held = inputs.values.get(name)
    if held is None or name in inputs.wrt or not differentiable(held):
        return True
    (moved,) = like((held,), trial.seed)
    other = replace(inputs, values={**inputs.values, name: held.detach() + moved.abs()})
    first, second = (quietly(lambda one=one: _answer(trial, one)) for one in (inputs, other))  # type: ignore[misc]
    if first is None or second is None or len(first) != len(second):
        return True
    return any(compare(trial, "value", b, a) is not HOLDS for a, b in zip(first, second, strict=True))


def _answer(trial: Trial, inputs: Inputs) -> list[Tensor]:
    leaves = inputs.leaves()
    with seeded(trial.seed):
        y = outputs(trial.spec.function(*inputs.args(leaves)))
        got = gradients(y, leaves, like(y, trial.seed)) if leaves else {}
    return [t.detach() for t in (*y, *got.values()) if isinstance(t, Tensor)]
