"""Shared parts of the laws on edge cases: forward and backward on inputs of an odd size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torch import Tensor

from gradspec.law import HOLDS, Finding, Trial, broken, not_applicable, raised
from gradspec.laws.tensor.support._call import Inputs, differentiable, gradients, like, outputs, vjp
from gradspec.laws.tensor.support._compare import compare, describe
from gradspec.laws.tensor.support._reference import on_spec_side, reference


def judge_edge(trial: Trial, is_edge: Callable[[Tensor], bool], otherwise: str) -> Finding:
    """Run forward and backward on an edge case, and compare value, gradient and their shapes.

    Args:
        trial: the law's view of the case.
        is_edge: whether a differentiated input makes the case one for this law.
        otherwise: what the verdict says of a case without such an input.
    """
    inputs = Inputs.of(trial)
    if not any(is_edge(inputs.values[name]) for name in inputs.wrt):
        return not_applicable(otherwise)
    expected = outputs(on_spec_side("primal", trial.spec.primal, *inputs.args()))
    leaves, twins = inputs.leaves(), inputs.leaves()
    try:
        y = outputs(trial.spec.function(*inputs.args(leaves)))
        v = like(y, trial.seed)  # of ones, the gradient of what is normalised is 0
        got = gradients(y, leaves, v)
    except Exception as error:
        return raised(error)
    for mine, theirs in zip(y, expected, strict=True):
        if (finding := compare(trial, "value", mine, theirs)) is not HOLDS:
            return finding
    right = gradients(outputs(reference(trial.spec)(*inputs.args(twins))), twins, v)
    for name, leaf in leaves.items():
        mine = got[name]
        if mine is not None and describe(mine) != describe(leaf):
            return broken(f"the gradient of `{name}` has another shape", got=describe(mine), expected=describe(leaf))
        if mine is None and right[name] is not None:
            return broken(f"no gradient flows to `{name}`", got="None", expected=describe(leaf))
        if (finding := compare(trial, f"gradient of `{name}`", mine, right[name], is_derivative=True)) is not HOLDS:
            return finding
    return HOLDS


def why_empty(trial: Trial, check: Callable[[Trial], Finding]) -> str:
    """Say that a call which raised in a check does not with one row in place of none."""
    inputs = Inputs.of(trial)
    given = {name: _with_a_row(value) for name, value in inputs.values.items()}
    if all(given[name] is value for name, value in inputs.values.items()):
        return ""
    filled = replace(trial, case=replace(trial.case, args=tuple(given.values()), kwargs={}))
    vjp(trial.spec.function, Inputs(given, inputs.wrt), seed=trial.seed)
    if "raised" in check(filled).details:
        return ""
    return "the call runs with one row in place of none: return early where there is none"


def _with_a_row(value: Any) -> Any:
    """Return a tensor with ones for each dimension of size 0; what has numbers as it is."""
    if not isinstance(value, Tensor) or value.numel():
        return value
    # An integer may be an index, and 0 is one of every table.
    return value.new_full([max(n, 1) for n in value.shape], 1 if differentiable(value) else 0)
