"""A gradient that a spec declares itself, where it is the derivative of no map."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

#: What a law that needs more than a first derivative says of such a spec.
NO_MAP = "the spec declares the gradient itself (gradient=): no map says what other derivatives would be"
_MARK = "gradspec_gradient"


def declared_gradient(primal: Callable[..., Any], gradient: Callable[..., Any]) -> Callable[..., Any]:
    """Return the primal with `gradient` as its backward pass: what the laws call where they would call a surrogate."""
    signature = inspect.signature(primal)

    def surrogate(*args: Any, **kwargs: Any) -> Any:
        from gradspec.spec._declared_backward import apply  # with it, torch: a page is rendered without

        return apply(primal, gradient, signature, args, kwargs)

    surrogate.__signature__ = signature  # type: ignore[attr-defined]  # what `inspect.signature` reads
    surrogate.__module__ = getattr(gradient, "__module__", None) or "__main__"
    surrogate.__qualname__ = getattr(gradient, "__qualname__", type(gradient).__qualname__)
    surrogate.__dict__[_MARK] = gradient
    return surrogate


def gradient_of(surrogate: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return the gradient that a surrogate was made of; None for one that is a map of its own."""
    found: Callable[..., Any] | None = getattr(surrogate, "__dict__", {}).get(_MARK)
    return found


def as_declared(call: Callable[..., Any], like: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call that was made of a surrogate, marked as that is."""
    if (gradient := gradient_of(like)) is not None:
        call.__dict__[_MARK] = gradient
    return call
