"""The methods of a class that is watched: who gives them, and what stands in their place."""

from __future__ import annotations

import weakref
from types import FunctionType, MethodType
from typing import Any

from torch.autograd.function import _SingleLevelFunction

from gradspec._watch._wrapping import original_of

#: An attribute of a function that tells of calls: the class that they are of, weakly.
_OF = "__gradspec_of__"


def giver(cls: Any, name: str) -> type | None:
    """Return the class that a method of a class is written in."""
    return next((one for one in cls.__mro__ if name in one.__dict__), None)


def is_class_of_torch(cls: Any) -> bool:
    """Whether a class is one of torch's own."""
    return str(getattr(cls, "__module__", "")).partition(".")[0] == "torch"


def to_hook(cls: Any, name: str) -> Any:
    """Return what a class holds as a method, or inherits and is called without a word of the class; None otherwise.

    A context or a classmethod tells which class is called. A forward beside `setup_context` has no context, and
    `torch.func` calls a backward with one of its own.
    """
    held = cls.__dict__.get(name)
    if held is None and cls.setup_context is not _SingleLevelFunction.setup_context:
        by = giver(cls, name)
        held = None if by is None or is_class_of_torch(by) else vars(by)[name]
        return None if isinstance(held, classmethod) else held
    return held


def function_in(held: Any) -> FunctionType | None:
    """Return the function of the program in a method; None if it is no Python function."""
    function = getattr(held, "__func__", held)
    function = original_of(function) or function
    return function if isinstance(function, FunctionType) else None


def is_told(cls: Any, held: Any) -> bool:
    """Whether a method tells of the calls of this class already, and not of those of another that has it too."""
    function = getattr(held, "__func__", held)
    return original_of(function) is not None and getattr(function, _OF)() is cls


def put(cls: Any, name: str, held: Any, function: FunctionType) -> None:
    """Let a function that tells of the calls of a class be its method, of the kind that another one is."""
    setattr(function, _OF, weakref.ref(cls))
    type.__setattr__(cls, name, _as(held, function))


def put_back(of: weakref.ref[Any], name: str) -> None:
    """Put the function of the program back, if it has not put another one there since."""
    cls = of()
    held = None if cls is None else cls.__dict__.get(name)
    original = original_of(getattr(held, "__func__", held))
    if original is not None:
        type.__setattr__(cls, name, _as(held, original))


def take_out(of: weakref.ref[Any], name: str) -> None:
    """Let a class inherit a method again."""
    cls = of()
    held = None if cls is None else cls.__dict__.get(name)
    if original_of(getattr(held, "__func__", held)) is not None:
        type.__delattr__(cls, name)


def _as(held: Any, function: FunctionType) -> Any:
    if isinstance(held, MethodType):
        return MethodType(function, held.__self__)
    return type(held)(function) if isinstance(held, staticmethod | classmethod) else function
