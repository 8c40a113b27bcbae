r"""Activation checkpointing, which runs forward a second time, gives the same value and the declared gradient.

Why it matters: large models are trained with it; forward runs twice for each backward.

What breaks it: state that forward changes, noise that the recomputation does not repeat.

Remedy: change state in an explicit call or in backward, and draw noise from torch's generators.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch.utils.checkpoint import checkpoint

from gradspec.law import Finding, Law, Status, Trial, not_applicable
from gradspec.laws.tensor.support._call import Inputs, fresh, outputs
from gradspec.laws.tensor.support._transform import frozen, judge_run, of_moved_state


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    function = frozen(trial.spec.function, inputs)
    finding = judge_run(trial, inputs, "checkpoint", lambda *x: checkpoint(function, *x, use_reentrant=False))
    finding = of_moved_state(trial, inputs, finding)
    if finding.status is Status.BROKEN and _moves(trial, inputs):
        return replace(finding, likely="forward leaves something behind that its second run finds")
    return finding


def _moves(trial: Trial, inputs: Inputs) -> bool:
    """Whether a second call on the same arguments gives something else."""
    args = inputs.args()
    first, second = (outputs(trial.spec.function(*map(fresh, args))) for _ in range(2))
    return not all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


CHECKPOINT = Law(
    name="checkpoint",
    family="transforms",
    statement=r"\operatorname{checkpoint}(F) = r",
    check=_check,
    doc=__doc__ or "",
    requires=("primal", "vjp"),
)
