r"""A backward pass leaves the parameters and buffers of a module as forward left them.

Why it matters: a moving average that moves twice a step follows the last batches only, and evaluation reads something
else than training measured.

What breaks it: a block that backward runs again, by checkpointing or to invert it, with a normalisation inside; a
buffer that backward writes.

Remedy: run the block again with copies of its buffers, or with its statistics switched off. What backward writes on
purpose, as a memory bank, `ModuleSpec.written_in_backward` names.
"""

from __future__ import annotations

import torch

from gradspec.law import HOLDS, Finding, Law, ModuleTrial, broken, not_applicable
from gradspec.laws.module.support._build import build, inputs, tensors
from gradspec.laws.tensor.support._call import like, outputs
from gradspec.laws.tensor.support._memory import first_change, snapshots


def _check(trial: ModuleTrial) -> Finding:
    if trial.case.inputs is None:
        return not_applicable("the case makes no call")
    module = build(trial, training=True)
    y = tuple(t for t in outputs(module(*inputs(trial))) if t.requires_grad)
    if not y:
        return not_applicable("the output has no graph")
    before = snapshots({k: t for k, t in tensors(module).items() if k not in trial.spec.written_in_backward})
    torch.autograd.backward(y, like(y, trial.seed))
    if changed := first_change(before, tensors(module)):
        said = f"backward writes to `{changed.name}`: {changed.how}"
        return broken(said, argument=f"`{changed.name}`", **changed.place)
    return HOLDS


BACKWARD_STATE = Law(
    name="backward_state",
    family="modules",
    statement=r"\text{backward} \Rightarrow \text{no state moves}",
    check=_check,
    doc=__doc__ or "",
    kinds=("module",),
)
