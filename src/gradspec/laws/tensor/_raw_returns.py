r"""The results of backward and jvp have exactly the shape and dtype of the input.

Why it matters: the engine repairs a wrong float dtype and a gradient that was not reduced over a broadcast,
silently and at a cost; functorch, compile and C++ callers may not.

What breaks it: a gradient that was not summed over a broadcast dimension, a float32 gradient of a float64 input.

Remedy: sum over the broadcast dimensions (`sum_to_size`) and compute in the dtype of the input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.autograd.function import FunctionCtx

from gradspec.law import HOLDS, Finding, Law, Rank, Trial, broken, not_applicable
from gradspec.laws.tensor.support._call import Inputs, gradients, like, outputs, pushforward
from gradspec.laws.tensor.support._compare import describe
from gradspec.laws.tensor.support._graph import classes_behind, is_of_operator
from gradspec.laws.tensor.support._reference import is_asked
from gradspec.laws.tensor.support._spying import spying


def _check(trial: Trial) -> Finding:
    cls, inputs = trial.spec.autograd_function, Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    if cls is None and (cls := _of_operator(trial, inputs)) is None:
        return not_applicable(_nothing_to_look_into(trial))
    if not hasattr(cls, "backward"):
        return not_applicable(f"the implementation, {cls.__name__}, is no torch.autograd.Function to look into")
    leaves = inputs.leaves()
    with spying(cls, "forward") as forwards, spying(cls, "backward") as calls:
        y = outputs(trial.spec.function(*inputs.args(leaves)))
        gradients(y, leaves, like(y, trial.seed))
    names = list(inputs.values)
    for _, returned in calls:
        for name in inputs.wrt:
            place, value = _place(leaves[name], forwards), inputs.values[name]
            if place is None and is_of_operator(cls):
                place = names.index(name)  # by the schema, lists taken apart, as they stand here
            raw = None if place is None else returned[place]
            if isinstance(raw, Tensor) and describe(raw) != describe(value):
                return _wrong("backward", name, raw, value)
    return _check_jvp(trial, cls, inputs) if is_asked(trial.spec, "forward_mode") else HOLDS


def _place(leaf: Tensor, forwards: Sequence[tuple[tuple[Any, ...], Any]]) -> int | None:
    """Return the place at which a Function gets an argument, among those that backward returns gradients for."""
    for args, _ in forwards:
        given = args[1:] if args and isinstance(args[0], FunctionCtx) else args
        if (place := next((k for k, value in enumerate(given) if value is leaf), None)) is not None:
            return place
    return None


def _of_operator(trial: Trial, inputs: Inputs) -> type | None:
    """Return the Function that torch made of an operator and its registered backward, where one is called directly."""
    behind = classes_behind(trial.spec.function(*inputs.args(inputs.leaves())))
    return behind[0] if len(behind) == 1 and is_of_operator(behind[0]) else None


def _nothing_to_look_into(trial: Trial) -> str:
    named = trial.spec.implementation
    if named is None and getattr(trial.spec.function, "__dict__", {}).get("gradspec_taken_apart"):
        return "a call with lists, dicts or variadic arguments: nothing says which of its tensors a return value is for"
    if named is None:
        return "the spec names no implementation to look into"
    return f"the implementation, {getattr(named, '__name__', named)}, is no torch.autograd.Function to look into"


def _check_jvp(trial: Trial, cls: type, inputs: Inputs) -> Finding:
    x = inputs.tensors()
    with spying(cls, "jvp") as calls:
        try:
            y, _ = pushforward(inputs.closed(trial.spec.function), x, like(x, trial.seed))
        except Exception:
            return HOLDS  # that forward mode raises is for the law jvp to say; backward was looked at above
    for _, returned in calls:
        for raw, value in zip(returned, y, strict=True):
            if raw is not None and describe(raw) != describe(value):  # None: no derivative, as of an index
                return _wrong("jvp", "output", raw, value)
    return HOLDS


def _wrong(method: str, name: str, raw: Tensor, value: Tensor) -> Finding:
    likely, does = ("computed in another dtype", "casts") if raw.shape == value.shape else ("", "sums")
    if raw.numel() > value.numel():
        likely = "a broadcast dimension is not summed"
    return broken(
        f"{method} returns {describe(raw)} for `{name}`, which is {describe(value)}, and torch {does} it silently",
        argument=f"what {method} returns for `{name}`",
        got=describe(raw),
        expected=describe(value),
        rank=Rank.WASTE,
        likely=likely,
    )


RAW_RETURNS = Law(
    name="raw_returns",
    family="values",
    statement=r"\operatorname{type}(\bar{x}) = \operatorname{type}(x)",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
)
