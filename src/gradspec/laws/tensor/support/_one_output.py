"""The gradients from one output of several."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Rank, Trial, broken, raised
from gradspec.laws.tensor.support._call import Inputs, gradients, like, outputs
from gradspec.laws.tensor.support._compare import compare_all
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._reference import is_stand_in, reference


def judge_each_output(trial: Trial, inputs: Inputs) -> Finding:
    """Hold the gradients from each of several outputs, while nobody asks for the others, to the reference's.

    In an audit that is the function itself, told that the cotangents of the others are zero.
    """
    is_audit = is_stand_in(trial.spec.surrogate)
    called, meant = (f(*inputs.args(inputs.leaves())) for f in (trial.spec.function, reference(trial.spec)))
    mine, theirs = (places(y) for y in (called, meant))
    if claimed := [k for k in mine if k not in theirs]:
        return broken(
            f"output {claimed[0]} requires grad, and that of the reference is constant",
            argument=f"output {claimed[0]}",
            likely="a loss of it trains nothing, and torch refuses none: ctx.mark_non_differentiable(...)",
            rank=Rank.WASTE,
        )
    for k in mine if len(mine) > 1 else ():
        leaves, twins = inputs.leaves(), inputs.leaves()
        y = outputs(trial.spec.function(*inputs.args(leaves)))[k : k + 1]
        right = outputs(reference(trial.spec)(*inputs.args(twins)))
        v, what = like(y, trial.seed), f"gradient from output {k} alone"
        try:
            got = gradients(y, leaves, v)
        except Exception as error:
            return raised(error, f"the {what}", likely="arithmetic on a cotangent that is None")
        asked = {j: torch.zeros_like(right[j]) for j in mine if is_audit} | {k: v[0]}
        expected = gradients(tuple(right[j] for j in asked), twins, tuple(asked.values()))

        def is_right_beside_zeros(k: int = k, v: Tensor = v[0], expected: Any = expected) -> bool:
            leaves = inputs.leaves()
            y = outputs(trial.spec.function(*inputs.args(leaves)))
            told = {j: torch.zeros_like(y[j]) for j in mine} | {k: v}
            beside = gradients(tuple(y[j] for j in told), leaves, tuple(told.values()))
            return compare_all(trial, "gradient", beside, expected) is HOLDS

        finding = compare_all(trial, what, got, expected, why=partial(_why, got, is_right_beside_zeros))
        if finding is not HOLDS:
            return finding
    return HOLDS


def tracked(y: Any) -> tuple[Tensor, ...]:
    """Return the outputs to which a graph leads."""
    given = outputs(y)
    return tuple(given[k] for k in places(y))


def places(y: Any) -> tuple[int, ...]:
    """Return at which places the outputs stand to which a graph leads."""
    return tuple(k for k, t in enumerate(outputs(y)) if isinstance(t, Tensor) and t.requires_grad)


def _why(got: Mapping[str, Tensor | None], is_right_beside_zeros: Callable[[], bool], name: str) -> str:
    if got[name] is None:
        return f"backward returns None for `{name}` where the cotangent of another output is None"
    return (
        "right where the cotangent of another output is zeros, and wrong where it is None"
        if quietly(is_right_beside_zeros)
        else ""
    )
