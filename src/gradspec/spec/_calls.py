"""The calls of a spec as people write them: tuples of arguments, single tensors, or cases; each becomes a case."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any

#: How much of a text or a number is in the name of a call.
LENGTH = 24


def name_of_call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Return the name of a call that has none: its arguments, a tensor by its dtype and shape.

    Example:
        >>> from gradspec.spec._calls import name_of_call
        >>> name_of_call((0.5, "mean"), {"dim": 1})
        "0.5, 'mean', dim=1"
    """
    words = [*map(_described, args), *(f"{name}={_described(value)}" for name, value in kwargs.items())]
    return ", ".join(words) or "no arguments"


def _described(value: Any) -> str:
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, list | tuple):
        inner = ", ".join(map(_described, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_described(item)}' for name, item in value.items())}}}"
    if value is None or isinstance(value, bool | int | float | complex | str):
        text = repr(value)
        return text if len(text) <= LENGTH else f"{text[: LENGTH - 1]}…"
    return type(value).__name__ if not isinstance(value, type) else value.__name__


def name_of(function: Any, primal: Any) -> str:
    """Return the name of a function: that of its class, of itself, or of what it computes.

    Raises:
        ValueError: none has one.
    """
    for thing in (getattr(function, "__self__", None), function, primal):
        name = getattr(thing, "__name__", "")
        if name and name.isidentifier() and name not in ("apply", "forward"):
            return str(name)
    raise ValueError(f"the spec of {function!r} needs a name: give name='...'")


def bound_call(signature: inspect.Signature, case: Any, role: str = "primal") -> inspect.BoundArguments:
    """Return the arguments of a case by name, defaults included.

    Raises:
        TypeError: they are not those of the signature.
    """
    try:
        bound = signature.bind(*case.args, **case.kwargs)
    except TypeError as error:
        first = case.args[0] if case.args else None
        hint = f"; if {first!r} is its name, write Case(..., name={first!r})" if isinstance(first, str) else ""
        raise TypeError(f"case {case.name!r} does not fit {role}{signature}: {error}{hint}") from None
    bound.apply_defaults()
    return bound


def as_generator(spec: str, cases: Any, case: type[Any]) -> Callable[[Any], Iterator[Any]]:
    """Return what yields the cases of a spec, from a list of calls or from what is called with a maker of tensors.

    Args:
        spec: the name of the spec, for an error.
        cases: as in a `FunctionSpec`.
        case: the class of a case.

    Raises:
        ValueError: `cases` is neither.
    """
    if isinstance(cases, list):

        def listed(make: Any) -> Iterator[Any]:
            device = getattr(make, "device", None)
            yield from _named((_placed(call, device) for call in cases), case)

        listed.__module__ = ""  # it was made here, and the calls were not
        return listed
    if not callable(cases):
        kind = "None" if cases is None else f"of type {type(cases).__name__}"
        raise ValueError(
            f"spec {spec!r}: cases is {kind}: write a list of calls, cases=[(x, 0.5)], or a generator of them, "
            "cases=lambda make: [(make(3), 0.5)]"
        )
    if getattr(cases, "__dict__", {}).get("gradspec_named"):
        return cases  # type: ignore[no-any-return]  # made here, of another spec

    @wraps(cases)
    def generated(make: Any) -> Iterator[Any]:
        yield from _named(cases(make), case)

    generated.__dict__["gradspec_named"] = True
    return generated


def _named(calls: Iterable[Any], case: type[Any]) -> Iterator[Any]:
    """Yield a case for each call; where two have one derived name, the second is numbered."""
    seen: dict[str, int] = {}
    for call in calls:
        made = _case(call, case)
        if isinstance(made, case) and made.name == name_of_call(made.args, made.kwargs):
            seen[made.name] = seen.get(made.name, 0) + 1
            if seen[made.name] > 1:
                made = case(name=f"{made.name} ({seen[made.name]})", args=made.args, kwargs=made.kwargs)
        yield made


def _case(call: Any, case: type[Any]) -> Any:
    if isinstance(call, tuple):
        return case(args=call)
    if hasattr(call, "dtype") and hasattr(call, "shape"):
        return case(args=(call,))
    return call  # it is none, and whoever runs it says so


def _placed(value: Any, device: Any) -> Any:
    """Return a call whose tensors are on a device, without a graph."""
    if hasattr(value, "detach") and hasattr(value, "to"):
        return value.detach() if device is None else value.detach().to(device)
    if type(value) in (list, tuple):
        return type(value)(_placed(item, device) for item in value)
    if type(value) is dict:
        return {name: _placed(item, device) for name, item in value.items()}
    if hasattr(value, "args") and hasattr(value, "kwargs") and hasattr(value, "name"):
        kind: Any = type(value)
        return kind(name=value.name, args=_placed(value.args, device), kwargs=_placed(dict(value.kwargs), device))
    return value
