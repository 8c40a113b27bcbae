"""The arguments of a function as the text of a lambda has them, and as it passes them on."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from gradspec._audit._case_text import argument_text


def parameters_text(signature: inspect.Signature) -> str:
    """Return the parameters of a lambda; defaults are written as they are made, tensors among them."""
    shown = [
        parameter if parameter.default is parameter.empty else parameter.replace(default=_Text(parameter.default))
        for parameter in signature.parameters.values()
    ]
    return str(signature.replace(parameters=shown))[1:-1]


def passed_text(signature: inspect.Signature, copied: Sequence[str] = ()) -> str:
    """Return the arguments of a call that hands each parameter on, some of them as copies."""
    return ", ".join(
        _passed(one, f"{name}.clone()" if name in copied else name) for name, one in signature.parameters.items()
    )


def taken_by(function: Callable[..., Any], signature: inspect.Signature) -> inspect.Signature:
    """Return a signature without the defaults that a function has no argument for."""
    try:
        names = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return signature
    if len(names) >= len(signature.parameters) or any(one.kind is one.VAR_POSITIONAL for one in names.values()):
        return signature
    kept = [one for name, one in signature.parameters.items() if name in names or one.default is one.empty]
    return signature.replace(parameters=kept)


def has_names(function: Callable[..., Any], signature: inspect.Signature) -> bool:
    """Return whether a function takes arguments of the same names."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return False
    kinds = [[(one.name, one.kind) for one in given.parameters.values()] for given in (signature, found)]
    return kinds[0] == kinds[1] and not isinstance(function, type)


class _Text:
    """A value that is shown as the expression that makes it."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __repr__(self) -> str:
        return argument_text(self._value)


def _passed(parameter: inspect.Parameter, value: str) -> str:
    if parameter.kind is parameter.VAR_POSITIONAL:
        return f"*{parameter.name}"
    return f"{parameter.name}={value}" if parameter.kind is parameter.KEYWORD_ONLY else value
