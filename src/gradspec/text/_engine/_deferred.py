"""Calls that a backward hands to the engine, so that they may run at the same time."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradspec.text._data import holds_itself
from gradspec.text._scheduling._position import branches
from gradspec.text._scheduling._run_sync import run_sync


@dataclass(frozen=True, eq=False, slots=True)
class Deferred:
    """A call that `backward` returns in place of a gradient, for the engine to make."""

    #: What is called; it returns what would have stood here.
    call: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


def defer(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Deferred:
    """Return a call for a backward to return in place of a gradient: the engine makes it, several at once if it may.

    The calls for the inputs of one node, and for the elements of a list, do not wait for each other then. A plain
    backward pass makes them one after the other, in the order of the edges.

    Args:
        call: A function, or an async function, that returns the gradient, or another `defer`.
        *args: Its arguments; a `defer` among them is made first, at the same time as its neighbours.
        **kwargs: Its keyword arguments.

    Example:
        >>> from gradspec.text import Function, Variable, defer
        >>> class Ask(Function):
        ...     io_bound = True
        ...     @staticmethod
        ...     def forward(ctx, x, y):
        ...         return Variable(x.data + y.data)
        ...     @staticmethod
        ...     def backward(ctx, grad_out):
        ...         return tuple(defer(Variable, f"{name}: {grad_out.data}") for name in "xy")
        >>> x, y = Variable("a", requires_grad=True), Variable("b", requires_grad=True)
        >>> Ask.apply(x, y).backward(Variable("shorter"), max_concurrency=2)
        >>> x.grad.data, y.grad.data
        ('x: shorter', 'y: shorter')
    """
    if not callable(call):
        raise TypeError(f"defer takes a function and its arguments, not {call!r}")
    return Deferred(call, args, kwargs)


def resolve(value: Any) -> Any:
    """Make the call that a value is, here and now; another value is returned as it is."""
    if not isinstance(value, Deferred):
        return value
    result = value.call(*map(resolve, value.args), **value.kwargs)
    if inspect.isawaitable(result):
        result = run_sync(result)
    return resolve(result)


def resolve_in_order(value: Any, above: tuple[int, ...] = ()) -> Any:
    """Make the calls in what a backward returned, one after the other, at the positions that they have at once."""
    if isinstance(value, Deferred):
        result = value.call(*resolve_in_order(value.args), **value.kwargs)
        return resolve_in_order(run_sync(result) if inspect.isawaitable(result) else result)
    if id(value) in above:
        raise holds_itself("what a backward returned")
    if not calls_deferred(value):
        return value
    results = [*(value.values() if isinstance(value, dict) else value)]
    for at, place in enumerate(branches(len(results))):
        with place:
            results[at] = resolve_in_order(results[at], (*above, id(value)))
    return dict(zip(value, results, strict=True)) if isinstance(value, dict) else type(value)(results)


def calls_deferred(value: Any) -> bool:
    """Return whether a value is a call, or holds one."""
    if isinstance(value, Deferred):
        return True
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, Sequence) or isinstance(value, str):
        return False
    return any(calls_deferred(item) for item in value)
