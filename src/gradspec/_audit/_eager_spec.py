"""What an audit holds a function to where nothing is promised: what the function itself does in eager mode."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_leaves

from gradspec._audit._held_still import held_still
from gradspec._audit._measured import Measured
from gradspec._audit._subject import Subject
from gradspec.laws.tensor.support._reference import stand_in
from gradspec.spec import Case, Effects, FunctionSpec, OperatorSpec, Supports


def eager_spec(
    subject: Subject, cases: tuple[Case, ...], measured: Measured, seed: int, *, alike: bool = False
) -> FunctionSpec:
    """Return a spec that promises what the function itself does in eager mode; `alike` as in `held_still`."""
    function = subject.call
    if measured.nested:
        function = _tensors_alone(function)
    if measured.noisy_forward or measured.noisy_backward:
        noisy = {"forward": measured.noisy_forward, "backward": measured.noisy_backward}
        function = held_still(function, seed, **noisy, alike=alike)

    def itself(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    itself.__signature__ = subject.signature  # type: ignore[attr-defined]  # what `inspect.signature` reads
    itself.__module__ = subject.module
    stand_in(itself)
    itself.__dict__["gradspec_state"] = frozenset(subject.state)
    itself.__dict__["gradspec_moving"] = subject.moving
    made: Any = partial(FunctionSpec, function=function, implementation=subject.implementation)
    if subject.operator is not None and function is subject.call:  # and not what holds its noise still
        made = partial(OperatorSpec, operator=subject.operator)
    spec: FunctionSpec = made(
        name=subject.name,
        primal=itself,
        surrogate=itself,
        wrt=measured.wrt,
        zero_gradient=tuple(name for name in measured.zero if name in measured.wrt),
        cases=lambda make: iter(cases),
        supports=Supports.eager(),  # a refusal breaks no promise that nobody gave
        effects=Effects(view_of=measured.view_of),
    )
    return spec


def _tensors_alone(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the tensors in what another one returns: in a dict, in nested lists, beside None."""

    def tensors(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        return tuple(leaf for leaf in tree_leaves(function(*args, **kwargs)) if isinstance(leaf, Tensor))

    return tensors
