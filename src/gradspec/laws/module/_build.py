"""How a law makes the module of a case: its weights from the seed, its dtype and device from the inputs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gradspec.law import ModuleTrial
from gradspec.laws.tensor._call import differentiable, fresh, like, outputs


def build(trial: ModuleTrial, *, training: bool, seed: int = 0) -> nn.Module:
    """Return a new module; two of one seed have the same weights."""
    torch.manual_seed(trial.seed + seed)
    module = trial.spec.module(*trial.case.args, **trial.case.kwargs)
    sample = next((value for value in trial.case.inputs or () if differentiable(value)), None)
    if sample is not None:
        module.to(sample.device, sample.dtype)
    return module.train(training)


def used(trial: ModuleTrial, *, seed: int = 0) -> nn.Module:
    """Return a module in evaluation that has trained: its buffers are no longer what they start as."""
    module = build(trial, training=True, seed=seed)
    for _ in range(2):
        y = [t for t in outputs(module(*inputs(trial))) if t.requires_grad]
        if y:
            torch.autograd.backward(y, like(tuple(y), trial.seed))
    module.zero_grad()
    return module.eval()


def inputs(trial: ModuleTrial) -> tuple[Any, ...]:
    """Return copies of the inputs of the case, those in `wrt` as leaves that ask for a gradient."""
    names = trial.spec.call_parameters()
    values = []
    for place, value in enumerate(trial.case.inputs or ()):
        copy = fresh(value)
        if place < len(names) and names[place] in trial.spec.wrt and differentiable(copy):
            copy.requires_grad_()
        values.append(copy)
    return tuple(values)


def rows(values: tuple[Any, ...], which: slice) -> tuple[Any, ...]:
    """Return some rows of a batch."""
    return tuple(value[which] if isinstance(value, Tensor) and value.ndim else value for value in values)


def one_tensor(y: Any) -> Tensor:
    """Return the output as the laws compare it: the first tensor of it."""
    first = outputs(y)[0]
    assert isinstance(first, Tensor)
    return first
