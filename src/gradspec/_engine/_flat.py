"""A call with lists, dicts, keyword-only or variadic arguments, as one whose arguments are named one by one.

The laws call by position, an argument at a time. So a case that is called otherwise is bound to the signature of the
primal, each tensor inside it becomes an argument of its own (`features_0`), and the functions of the spec get what they
expect, put together again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from torch import Tensor

from gradspec.law import Trial
from gradspec.spec import Case, Effects, FunctionSpec
from gradspec.spec._calls import bound_call
from gradspec.spec._function_parts import REPLAYED

_PLAIN = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def flattened(trial: Trial) -> Trial:
    """Return the trial of the same call with one name an argument; the trial itself where it is so already."""
    spec, case = trial.spec, trial.case
    bound = bound_call(inspect.signature(spec.primal), case)
    kinds = (parameter.kind for parameter in bound.signature.parameters.values())
    holders = [name for name, value in bound.arguments.items() if _holds_tensors(value)]
    if not holders and all(kind in _PLAIN for kind in kinds):
        return trial
    flat: dict[str, Any] = {}
    shape = {name: _taken_apart(name, value, flat) for name, value in bound.arguments.items()}
    under = {name: list(_leaves(part)) for name, part in shape.items()}

    def leaves(name: str) -> list[str]:
        """Return the arguments that a name in `wrt` stands for: `xs` for all in a list, `xs[0]` for one."""
        one = name.replace("[", "_").replace("]", "")
        return under.get(name, [one] if one in flat else [])

    def put_together(given: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        call = inspect.BoundArguments(bound.signature, {n: _together(s, given) for n, s in shape.items()})
        return call.args, call.kwargs

    def adapted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            given = dict(zip(flat, args, strict=False)) | kwargs
            args, keywords = put_together(given)
            return function(*args, **keywords)

        names = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in flat]
        call.__module__ = getattr(function, "__module__", None) or "__main__"
        call.__dict__.update(getattr(function, "__dict__", {}))
        call.__dict__["gradspec_taken_apart"] = True
        call.__signature__ = inspect.Signature(names)  # type: ignore[attr-defined]
        return call

    primal = adapted(spec.primal)
    plain = FunctionSpec(
        name=spec.name,
        function=adapted(spec.function),
        primal=primal,
        surrogate=primal if spec.surrogate is spec.primal else adapted(spec.surrogate),
        cases=spec.cases,
        wrt=tuple(leaf for name in spec.wrt for leaf in leaves(name)),
        zero_gradient=tuple(leaf for name in spec.zero_gradient for leaf in leaves(name)),
        supports=spec.supports,
        accuracy=spec.accuracy,
        effects=Effects(view_of=next(iter(under.get(spec.effects.view_of or "", ())), None)),
        placements=tuple(
            replace(
                way,
                arguments={leaf: at for name, at in way.arguments.items() for leaf in leaves(name)},
                call=way.call and adapted(way.call),
            )
            for way in spec.placements
        ),
        saved=spec.saved and replace(spec.saved, bytes=adapted(spec.saved.bytes)),
        documented=spec.documented,
        noise=spec.noise if spec.noise == REPLAYED else None,
    )
    return replace(trial, spec=plain, case=Case(name=case.name, args=tuple(flat.values())))


def taken_apart(name: str, value: Any) -> dict[str, Any]:
    """Return the tensors inside the value of an argument by the names that they have in a call taken apart."""
    flat: dict[str, Any] = {}
    _taken_apart(name, value, flat)
    return flat


def _holds_tensors(value: Any) -> bool:
    if isinstance(value, dict):
        return any(isinstance(item, Tensor) or _holds_tensors(item) for item in value.values())
    return isinstance(value, list | tuple) and any(isinstance(v, Tensor) or _holds_tensors(v) for v in value)


def _taken_apart(name: str, value: Any, flat: dict[str, Any]) -> Any:
    """Put the tensors of a value, or the value, into `flat`; return how it is put together again, names for leaves."""
    if not _holds_tensors(value):
        flat[name] = value
        return _Leaf(name)
    items = value.items() if isinstance(value, dict) else enumerate(value)
    parts = {key: _taken_apart(f"{name}_{key}", item, flat) for key, item in items}
    return parts if isinstance(value, dict) else _of_kind(value, parts.values())


def _leaves(shape: Any) -> Iterator[str]:
    """Yield the names of the arguments into which a value was taken apart."""
    if isinstance(shape, _Leaf):
        yield str(shape)
    elif isinstance(shape, dict | list | tuple):
        for part in shape.values() if isinstance(shape, dict) else shape:
            yield from _leaves(part)


class _Leaf(str):
    """The name of an argument that is in the place of its value."""


def _together(shape: Any, given: dict[str, Any]) -> Any:
    if isinstance(shape, _Leaf):
        return given[shape]
    if isinstance(shape, dict):
        return {key: _together(item, given) for key, item in shape.items()}
    return _of_kind(shape, (_together(item, given) for item in shape))


def _of_kind(holder: list[Any] | tuple[Any, ...], items: Iterable[Any]) -> Any:
    """Return a list or tuple of the kind of another one; a named tuple takes its items one by one."""
    return holder._make(items) if hasattr(holder, "_make") else type(holder)(items)
