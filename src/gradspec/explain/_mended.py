"""The function with one of its results mended: what another law still finds there does not follow from that one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from gradspec.law import Status, Trial
from gradspec.laws import stand_in
from gradspec.laws.tensor._surrogate import SURROGATE
from gradspec.laws.tensor.support._call import Inputs, differentiable, outputs
from gradspec.laws.tensor.support._graph import classes_behind, nodes_behind
from gradspec.laws.tensor.support._reference import reference, stop
from gradspec.spec import FunctionSpec
from gradspec.spec._function import with_function


def by_itself(trial: Trial, *, value: bool = True, gradient: bool = True) -> Trial:
    """Return the trial of a spec that promises what the function itself does in eager mode.

    Args:
        trial: the law's view of the case.
        value: promise the value of the function.
        gradient: promise its gradient.
    """
    spec = trial.spec
    eager = stand_in(_calls(spec.function, spec))
    promised = replace(
        spec,
        primal=eager if value else spec.primal,
        surrogate=eager if gradient else spec.surrogate,
        gradient=None,
        formula=None,
    )
    return replace(trial, spec=promised)


def with_right_backward(trial: Trial) -> Trial:
    """Return the trial of a function with the gradient of the reference, and the tangent of its own."""
    own, right = trial.spec.function, reference(trial.spec)
    return _with(trial, lambda *args: own(*args) if _is_in_forward_mode() else right(*args))


def with_right_tangent(trial: Trial) -> Trial:
    """Return the trial of a function with the tangent of the reference, and the gradient of its own."""
    own, right = trial.spec.function, reference(trial.spec)
    return _with(trial, lambda *args: right(*args) if _is_in_forward_mode() else own(*args))


def with_right_value(trial: Trial) -> Trial:
    """Return the trial of a function that returns the right value, and hands it to its backward.

    Where torch wrote the backward, it is that of forward: if it is the derivative of what forward computes, forward
    alone is wrong, and the trial is of the reference.
    """
    spec = trial.spec
    if is_of_torch(trial) and SURROGATE.check(by_itself(trial)).status is Status.HOLDS:
        return _with(trial, reference(spec))

    def mended(*args: Any) -> Any:
        right = outputs(spec.primal(*map(stop, args)))
        wrong: list[Tensor] = []

        def unpack(kept: Tensor) -> Tensor:
            places = [k for k, y in enumerate(wrong) if _is_equal(kept, y)]
            return right[places[0]] if places else kept

        with saved_tensors_hooks(lambda kept: kept, unpack):
            y = spec.function(*args)
        wrong += [t.detach().clone() for t in outputs(y)]
        for node in nodes_behind(y):
            _hand_over(node, wrong, right)
        joined = tuple(map(_with_value, outputs(y), right))
        return joined if isinstance(y, tuple | list) else joined[0]

    return _with(trial, mended)


def is_of_torch(trial: Trial) -> bool:
    """Whether no one but torch wrote the backward of a function."""
    inputs = Inputs.of(trial)
    return not classes_behind(trial.spec.function(*inputs.args(inputs.leaves())))


def _with(trial: Trial, function: Callable[..., Any]) -> Trial:
    return replace(trial, spec=with_function(trial.spec, function))


def _calls(function: Callable[..., Any], spec: FunctionSpec) -> Callable[..., Any]:
    """Return a callable of its own that calls the function with the arguments that the primal names."""

    @wraps(spec.primal)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


def _is_in_forward_mode() -> bool:
    return torch._C._functorch.maybe_current_level() is not None


def _hand_over(node: Any, wrong: list[Tensor], right: tuple[Any, ...]) -> None:
    """Put the right outputs in place of the wrong ones that a Function keeps as attributes of its ctx."""
    for name, kept in list(getattr(node, "__dict__", {}).items()):
        for y, theirs in zip(wrong, right, strict=True):
            if isinstance(kept, Tensor) and _is_equal(kept, y):
                setattr(node, name, theirs)


def _is_equal(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return bool(torch.isclose(one.detach(), other, rtol=0, atol=0, equal_nan=True).all())


def _with_value(y: Any, right: Any) -> Any:
    return y + (right - y).detach() if differentiable(y) else right
