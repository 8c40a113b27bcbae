"""A call of a spec, ready to be made."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradspec.spec._base import Case


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """A call that is ready to be made, and how it is written."""

    #: The calls in the order in which they are written, each with its arguments: `("Net", (4,), {}), ("", (x,), {})`.
    written: tuple[tuple[str, tuple[Any, ...], Mapping[str, Any]], ...]
    #: Makes the call.
    call: Callable[[], Any]
    #: What a refused call must leave as it is, by name; only tensors are looked at.
    values: Mapping[str, Any]
    #: What else it must leave as it is, in words by name: read before the call and after it.
    state: Callable[[], Mapping[str, str]] = dict


def direct(function: Callable[..., Any], case: Case, name: str = "") -> Invocation:
    """Return the call of a function on the arguments of a case; its name is written in front."""
    given = {str(place): value for place, value in enumerate([*case.args, *case.kwargs.values()])}
    return Invocation(
        written=((getattr(function, "__qualname__", name), case.args, case.kwargs),),
        call=lambda: function(*case.args, **case.kwargs),
        values={f"argument {place}": value for place, value in given.items()},
    )


def bound(signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of a call by the names of its arguments; none if it does not fit, as a wrong one may not."""
    try:
        return signature.bind_partial(*args, **kwargs).arguments
    except TypeError:
        return {}
