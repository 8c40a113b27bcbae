"""Differentiate forward by autograd: the gradient that is left if a custom one is dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.autograd import Function

from gradspec.laws.tensor.support._call import fresh
from gradspec.laws.tensor.support._graph import classes_behind


class _Context:
    """A ctx for forward whose methods have no effect."""

    saved_tensors = ()

    def __init__(self, count: int) -> None:
        self.needs_input_grad = (True,) * count

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep nothing."""

    save_for_forward = mark_dirty = mark_non_differentiable = set_materialize_grads = save_for_backward


def plain_forward(cls: type) -> Callable[..., Any]:
    """Return forward of a Function as an ordinary function, without the custom gradient."""
    forward: Callable[..., Any] = getattr(cls, "forward")  # noqa: B009 - a type has none that mypy knows
    if getattr(cls, "setup_context", None) is not Function.setup_context:
        return forward
    return lambda *args: forward(_Context(len(args)), *args)


def detached_forward(cls: type) -> Callable[..., Any]:
    """Return forward of a Function as one through which no gradient flows."""

    def forward(*args: Any) -> Any:
        with torch.no_grad():
            return plain_forward(cls)(*args)

    return forward


def without_custom_gradient(
    function: Callable[..., Any], *args: Any, forward_of: Callable[[type], Callable[..., Any]] = plain_forward
) -> Any:
    """Return what a function gives where the Functions that it applies are ordinary code.

    Args:
        function: what is called.
        args: its arguments.
        forward_of: what takes the place of a Function.

    Raises:
        Exception: what forward raises where autograd looks on.
    """
    owner = getattr(function, "__self__", None)
    if isinstance(owner, type) and issubclass(owner, Function):
        return forward_of(owner)(*args)
    # On copies: a module may move its state.
    copies = (arg if getattr(arg, "requires_grad", False) else fresh(arg) for arg in args)
    classes = [cls for cls in classes_behind(function(*copies)) if issubclass(cls, Function)]
    with ExitStack() as stack:
        for cls in classes:
            stack.enter_context(_applied_as(cls, forward_of(cls)))
        return function(*args)


@contextmanager
def _applied_as(cls: Any, forward: Callable[..., Any]) -> Iterator[None]:
    own = vars(cls).get("apply")
    cls.apply = staticmethod(forward)
    try:
        yield
    finally:
        if own is None:
            del cls.apply
        else:
            cls.apply = own
