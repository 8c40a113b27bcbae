"""A Python function in whose place stands one that tells of each call first; whatever reads it sees no difference."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch

_ORIGINAL, _FILE = "__gradspec_original__", "<gradspec watch>"


def original_of(function: Any) -> FunctionType | None:
    """Return the function in whose place another one stands; None if that one is the program's own."""
    code = getattr(function, "__code__", None)
    if getattr(code, "co_filename", "") != _FILE:  # functools.wraps gives the attribute to what wraps it
        return None
    found: FunctionType = getattr(function, _ORIGINAL)
    return found


def telling(original: FunctionType, before: Callable[[tuple[Any, ...], dict[str, Any]], None]) -> FunctionType:
    """Return a function of the same parameters that tells `before` the arguments, and then calls the original.

    Its code has parameters of the same names: torch reads them to take keywords, in C++ as in Dynamo, which traces
    through it without a break. What Dynamo traces is not told.
    """
    code = original.__code__
    named = code.co_varnames[: code.co_argcount]
    rest = list(code.co_varnames[code.co_argcount + code.co_kwonlyargcount :])
    only = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    many = rest.pop(0) if code.co_flags & 0x04 else ""
    keys = rest.pop(0) if code.co_flags & 0x08 else ""
    parameters = list(named)
    if code.co_posonlyargcount:
        parameters.insert(code.co_posonlyargcount, "/")
    parameters += [f"*{many}"] if many else ["*"] if only else []
    parameters += [*only, *([f"**{keys}"] if keys else [])]
    by_position = ", ".join([*named, *([f"*{many}"] if many else [])])
    by_name = [f"{name}={name}" for name in only] + ([f"**{keys}"] if keys else [])
    name = original.__name__ if original.__name__.isidentifier() else "forward"
    arguments = (f"({by_position}{',' if by_position else ''})", f"dict({', '.join(by_name)})")
    make = _maker(name, ", ".join(parameters), ", ".join(arguments), ", ".join(filter(None, [by_position, *by_name])))
    told: FunctionType = make(original, before, torch.compiler.is_dynamo_compiling)
    functools.update_wrapper(told, original)
    told.__defaults__, told.__kwdefaults__ = original.__defaults__, original.__kwdefaults__
    setattr(told, _ORIGINAL, original)
    return told


@functools.lru_cache(maxsize=1024)
def _maker(name: str, parameters: str, told: str, passed: str) -> Callable[..., Any]:
    source = (
        f"def _make(_gradspec_original, _gradspec_before, _gradspec_compiling):\n"
        f"    def {name}({parameters}):\n"
        f"        if not _gradspec_compiling():\n"
        f"            _gradspec_before({told})\n"
        f"        return _gradspec_original({passed})\n"
        f"    return {name}\n"
    )
    made: dict[str, Any] = {}
    exec(compile(source, _FILE, "exec"), globals(), made)
    found: Callable[..., Any] = made["_make"]
    return found
