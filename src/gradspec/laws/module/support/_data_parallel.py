"""The gradients of a module on two ranks, each with half of the batch, beside those of one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from gradspec._process_state import seed_torch
from gradspec.law import HOLDS, Finding, ModuleTrial, broken, not_applicable, shown
from gradspec.laws.module.support._build import batch, build, inputs, rows
from gradspec.laws.tensor.support._call import like, outputs
from gradspec.laws.tensor.support._compare import compare_all
from gradspec.laws.tensor.support._ranks import RANKS, is_dtensor
from gradspec.laws.tensor.support._two_ranks import RankError, on_two_ranks

#: How often each module is called: what the first call leaves behind decides the second.
STEPS = 2
Gradients = dict[str, Tensor | None]


def judge_ranks(trial: ModuleTrial, way: str, wrap: Callable[[nn.Module], nn.Module]) -> Finding:
    """Judge a module under a wrapper, by the gradients of its parameters after each step."""
    if way not in trial.spec.data_parallel:
        return not_applicable("the spec does not promise it: name it in ModuleSpec.data_parallel")
    if trial.case.inputs is None:
        return not_applicable("the case makes no call")
    if (size := batch(inputs(trial))) < RANKS:
        return not_applicable("the batch has no row for each rank")
    half = size // RANKS
    whole = slice(0, RANKS * half)
    halves = [slice(rank * half, (rank + 1) * half) for rank in range(RANKS)]
    weights = _weights(trial, whole)
    refusal, got = "", []
    # First the two, then the one: beside a device, a backward starts threads, and no process can be forked behind it.
    try:
        got = on_two_ranks(lambda rank: gradients(trial, weights, halves[rank], rank, wrap))
    except RankError as error:
        refusal = str(error)
    if _decides_by_rank(trial, whole):
        try:
            parts = [gradients(trial, weights, halves[rank], rank) for rank in range(RANKS)]
        except Exception as error:
            return not_applicable(f"one process refuses half of the batch: {shown(error)}")
        expected = [_mean(step) for step in zip(*parts, strict=True)]
    else:
        expected = gradients(trial, weights, whole)
    if refusal:
        return broken(f"{way} {refusal}", details={"raised": refusal})
    for rank, steps in enumerate(got):
        for step, (mine, right) in enumerate(zip(steps, expected, strict=True), 1):
            when = f"rank {rank}, call {step}"
            if (finding := compare_all(trial, f"gradient under {way}", mine, right, when=when)) is not HOLDS:
                return finding
    return HOLDS


def gradients(
    trial: ModuleTrial,
    weights: tuple[Tensor, ...],
    which: slice,
    rank: int = 0,
    wrap: Callable[[nn.Module], nn.Module] = lambda module: module,
) -> list[Gradients]:
    """Return the gradients of the parameters of a new module in training, for some rows, after each of the steps.

    The loss is the mean over the rows of the weighted output; an output without a batch is a mean already.
    """
    module = build(trial, training=True)
    call = wrap(module)
    found = []
    for step in range(STEPS):
        module.zero_grad()
        seed_torch(trial.seed + RANKS * step + rank)
        given = tuple(v.detach() if isinstance(v, Tensor) else v for v in rows(inputs(trial), which))
        y = outputs(call(*given))
        terms = [(w[which] * t).sum() / len(t) if w.ndim else t for w, t in zip(weights, y, strict=True)]
        torch.stack([term for term in terms if term.requires_grad]).sum().backward()  # type: ignore[no-untyped-call]
        found.append({name: _whole(p.grad) for name, p in module.named_parameters() if p.requires_grad})
    return found


def _weights(trial: ModuleTrial, whole: slice) -> tuple[Tensor, ...]:
    """Return what each element of the output counts for in the loss; 1 where there is no batch."""
    with torch.no_grad():
        y = outputs(build(trial, training=True)(*rows(inputs(trial), whole)))
    return tuple(
        w if t.ndim and len(t) == whole.stop else torch.ones(()) for t, w in zip(y, like(y, trial.seed), strict=True)
    )


def _decides_by_rank(trial: ModuleTrial, whole: slice) -> bool:
    """Whether a half of the batch gives, by its nature, another value than in the whole: by a norm, or by noise."""
    module = build(trial, training=True)
    before = torch.get_rng_state()
    with torch.no_grad():
        module(*rows(inputs(trial), whole))
    return any(isinstance(part, _BatchNorm) for part in module.modules()) or not torch.equal(
        before, torch.get_rng_state()
    )


def _mean(parts: tuple[Gradients, ...]) -> Gradients:
    found: Gradients = {}
    for name in parts[0]:
        there = [g for part in parts if (g := part[name]) is not None]
        found[name] = torch.stack(there).sum(0) / len(parts) if there else None
    return found


def _whole(gradient: Any) -> Tensor | None:
    if gradient is None:
        return None
    whole: Tensor = gradient.full_tensor() if is_dtensor(gradient) else gradient
    return whole.detach().clone()
