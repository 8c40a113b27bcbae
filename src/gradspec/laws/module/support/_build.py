"""How a law makes the module of a case and runs it: weights from the seed, dtype and device from the inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from gradspec._process_state import seed_torch
from gradspec.law import HOLDS, Finding, ModuleTrial
from gradspec.laws.tensor.support._call import differentiable, fresh, like, outputs

_EVALUATION = "evaluation_mode"


def build(trial: ModuleTrial, *, training: bool, seed: int = 0) -> nn.Module:
    """Return a new module; two of one seed have the same weights."""
    seed_torch(trial.seed + seed)
    module = trial.spec.module(*trial.case.args, **trial.case.kwargs)
    sample = next((value for value in trial.case.inputs or () if differentiable(value)), None)
    if sample is not None:
        module.to(sample.device, sample.dtype)
    return module.train(training)


def used(trial: ModuleTrial, *, seed: int = 0) -> nn.Module:
    """Return a module in evaluation that has trained: its buffers are no longer what they start as."""
    module = build(trial, training=True, seed=seed)
    if trial.case.inputs is not None:
        for _ in range(2):
            y = tuple(t for t in outputs(module(*inputs(trial))) if t.requires_grad)
            if y:
                torch.autograd.backward(y, like(y, trial.seed))
    module.zero_grad()
    return module.eval()


def inputs(
    trial: ModuleTrial, *, dtype: torch.dtype | None = None, layout: torch.memory_format | None = None
) -> tuple[Any, ...]:
    """Return copies of the inputs of the case, those in `wrt` as leaves that ask for a gradient.

    Args:
        trial: the law's view of the case.
        dtype: of the floating inputs, their own unless given.
        layout: the memory format of images, as it is unless given.
    """
    names = trial.spec.call_parameters()
    values = []
    for place, value in enumerate(trial.case.inputs or ()):
        copy = fresh(value)
        if dtype is not None and differentiable(copy):
            copy = copy.to(dtype)
        if layout is not None and isinstance(copy, Tensor) and copy.ndim == 4:
            copy = copy.contiguous(memory_format=layout)
        if place < len(names) and names[place] in trial.spec.wrt and differentiable(copy):
            copy.requires_grad_()
        values.append(copy)
    return tuple(values)


def batch(values: tuple[Any, ...]) -> int:
    """Return the number of rows of a batch."""
    return next(value.shape[0] for value in values if isinstance(value, Tensor) and value.ndim)


def rows(values: tuple[Any, ...], which: slice) -> tuple[Any, ...]:
    """Return some rows of a batch."""
    return tuple(value[which] if isinstance(value, Tensor) and value.ndim else value for value in values)


def evaluate(trial: ModuleTrial, module: nn.Module, dtype: torch.dtype | None = None) -> dict[str, Tensor]:
    """Return the outputs of a call, by name; `dtype` is that of the floating inputs."""
    with torch.no_grad():
        return _named(module(*inputs(trial, dtype=dtype)))


def beside_evaluation(trial: ModuleTrial, module: nn.Module, finding: Finding) -> Finding:
    """Return a finding about two evaluations; it follows where two of the module itself differ already."""
    first, second = evaluate(trial, module), evaluate(trial, module)
    if finding is HOLDS or all(torch.equal(second[name], t) for name, t in first.items()):
        return finding
    details = {**finding.details, "found": finding.message}
    said = f"follows from {_EVALUATION}"
    return replace(finding.because(None), message=said, follows=_EVALUATION, details=details)


def forward_backward(trial: ModuleTrial, module: nn.Module, call: Any = None, **how: Any) -> dict[str, Any]:
    """Return the outputs of a call and the gradients of parameters and inputs for a fixed cotangent, by name.

    Args:
        trial: the law's view of the case.
        module: whose parameters are differentiated.
        call: what is called in its place, a compiled form of it.
        how: the form of the inputs, as `inputs` takes it.
    """
    given = inputs(trial, **how)
    leaves: dict[str, Tensor] = {f"gradient of `{name}`": p for name, p in module.named_parameters() if p.requires_grad}
    leaves |= {
        f"gradient of argument {place}": value
        for place, value in enumerate(given)
        if isinstance(value, Tensor) and value.requires_grad
    }
    seed_torch(trial.seed)
    y = outputs((module if call is None else call)(*given))
    tracked = tuple(t for t in y if t.requires_grad)
    got: dict[str, Any] = dict(_named(y))
    if tracked and leaves:
        found = torch.autograd.grad(tracked, list(leaves.values()), like(tracked, trial.seed), allow_unused=True)
        got |= dict(zip(leaves, found, strict=True))
    return got


def tensors(module: nn.Module) -> dict[str, Tensor]:
    """Return the parameters and buffers of a module, those outside its state among them, by name."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _named(y: Any) -> dict[str, Tensor]:
    return {f"output {place}": t.detach() for place, t in enumerate(outputs(y)) if isinstance(t, Tensor)}
