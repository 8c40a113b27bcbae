"""The spec of a function without one: what the function itself does in eager mode."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_leaves

from gradspec._audit._measured import Measured
from gradspec._audit._subject import Subject
from gradspec.laws.tensor.support._reference import stand_in
from gradspec.spec import Case, Effects, FunctionSpec, OperatorSpec
from gradspec.spec._function_parts import REPLAYED
from gradspec.spec._gradient import as_declared


def eager_spec(subject: Subject, cases: tuple[Case, ...], measured: Measured) -> FunctionSpec:
    """Return a spec that promises what the function itself does in eager mode, or what is given in place of that."""

    def alike_called(call: Callable[..., Any]) -> Callable[..., Any]:
        return _tensors_alone(call) if measured.nested else call

    function = alike_called(subject.call)

    def promise(given: Callable[..., Any]) -> Callable[..., Any]:
        return as_declared(_promise(subject, alike_called(given), given.__module__), given)

    itself = stand_in(_promise(subject, function, subject.module))
    primal = itself if subject.primal is None else promise(subject.primal)
    surrogate = primal if subject.surrogate is None else promise(subject.surrogate)
    told = [{one.name for one in measured.lost if one.case == case.name} for case in cases]
    itself.__dict__["gradspec_zero"] = subject.zero.union(
        frozenset.intersection(*map(frozenset, told)), measured.stopped
    )
    made: Any = partial(FunctionSpec, function=function, implementation=subject.implementation)
    if subject.operator is not None and function is subject.call and not measured.is_noisy:
        made = partial(OperatorSpec, operator=subject.operator)
    spec: FunctionSpec = made(
        name=subject.name,
        primal=primal,
        surrogate=surrogate,
        wrt=tuple(one for name in measured.wrt for one in measured.partly.get(name, (name,))),
        zero_gradient=tuple(name for name in measured.zero if name in measured.wrt),
        cases=lambda make: iter(cases),
        supports=subject.supports,
        accuracy=subject.accuracy,
        effects=Effects(view_of=measured.view_of),
        noise=REPLAYED if measured.is_noisy else None,
    )
    return spec


def _promise(subject: Subject, call: Callable[..., Any], module: str) -> Callable[..., Any]:
    """Return a function with the signature and the state of the one that is audited."""

    def called(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    called.__signature__ = subject.signature  # type: ignore[attr-defined]  # what `inspect.signature` reads
    called.__module__ = module
    called.__dict__["gradspec_audited"] = True
    called.__dict__["gradspec_state"] = subject.own.union(subject.state)
    called.__dict__["gradspec_moving"] = subject.moving
    called.__dict__["gradspec_marked"] = subject.marked
    called.__dict__["gradspec_module"] = bool(subject.layers)
    return called


def _tensors_alone(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the tensors in what another one returns: in a dict, in nested lists, beside None."""

    def tensors(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        return tuple(leaf for leaf in tree_leaves(function(*args, **kwargs)) if isinstance(leaf, Tensor))

    return tensors
