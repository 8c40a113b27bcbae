"""Gradients that are lost within an argument: those of the parameters of a module that a call is handed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from gradspec._audit._lost import Lost
from gradspec._audit._subject import Subject
from gradspec.law import Trial
from gradspec.laws.tensor.support._call import Inputs, like, outputs

#: By how much of itself, and beside it, a parameter is moved.
_MOVED = 1e-2


def lost_within(subject: Subject, trial: Trial) -> Iterator[Lost]:
    """Yield the parameters of modules that a call is handed and runs, which get no gradient, and move the output.

    One that reads a parameter only may do without its gradient: nobody knows.
    """
    inputs = Inputs.of(trial)
    args = inputs.args(inputs.leaves())
    for name, module in zip(inputs.values, args, strict=True):
        if not isinstance(module, nn.Module) or name in subject.zero:
            continue
        named = {f"{name}.{own}": p for own, p in module.named_parameters() if p.requires_grad}
        ran: list[bool] = []
        hook = module.register_forward_pre_hook(lambda *_, ran=ran: ran.append(True))
        with hook, _kept(tuple(named.values())):
            y = tuple(t for t in outputs(trial.spec.function(*args)) if isinstance(t, Tensor) and t.requires_grad)
            if not y or not ran:
                continue
            torch.autograd.backward(y, like(y, trial.seed))
            lost = [own for own, p in named.items() if p.grad is None]
        for own in lost:
            if _moves_with(trial, args, named[own]):
                yield Lost(case=trial.case.name, name=own, got="None", is_wrong=True, is_within=True)


@contextmanager
def _kept(parameters: Sequence[Tensor]) -> Iterator[None]:
    """Put the gradients of some parameters back, which have none meanwhile."""
    before = [p.grad for p in parameters]
    for p in parameters:
        p.grad = None
    try:
        yield
    finally:
        for p, grad in zip(parameters, before, strict=True):
            p.grad = grad


def _moves_with(trial: Trial, args: Sequence[Any], parameter: Tensor) -> bool:
    """Whether the output is another one where a parameter is."""
    with torch.no_grad():
        before, kept = _values(trial, args), parameter.clone()
        parameter.add_(_MOVED * (1 + parameter.abs()))
        try:
            after = _values(trial, args)
        finally:
            parameter.copy_(kept)
    return any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))


def _values(trial: Trial, args: Sequence[Any]) -> list[Tensor]:
    return [t.detach().clone() for t in outputs(trial.spec.function(*args)) if isinstance(t, Tensor)]
