"""How a subclass of torch's classes is called, read off its `forward`: never by a parameter's name."""

from __future__ import annotations

import inspect
from typing import Any

from sphinx.util.inspect import signature

from gradspec.spec._sheet import as_applied
from gradspec.sphinx_ext.autodoc._torch_bases import is_torch, torch_base


def is_function(cls: Any) -> bool:
    """Whether a class is an autograd Function."""
    base = torch_base(cls)
    return base is not None and base.__name__ == "Function"


def call_signature(cls: Any) -> inspect.Signature | None:
    """Return the signature of the call: that of `forward` without ctx, short of what an `apply` of its own fills in."""
    found = forward_signature(cls)
    return None if found is None else as_applied(cls, found)


def forward_signature(cls: Any) -> inspect.Signature | None:
    """Return the signature of `forward` without ctx, by position: published code calls it `self` too."""
    if not is_function(cls):
        return None
    owner = next(c for c in cls.__mro__ if "setup_context" in vars(c))
    return _without(cls.forward, 1 if is_torch(owner) else 0)


def without_first(method: Any) -> inspect.Signature | None:
    """Return the signature of a method that torch calls with ctx, without it."""
    return _without(method, 1)


def _without(method: Any, skipped: int) -> inspect.Signature | None:
    try:
        found = signature(method)
    except (TypeError, ValueError):
        return None
    return found.replace(parameters=list(found.parameters.values())[skipped:])
