"""The classes of torch whose members users inherit, found in a class's bases: torch itself is never imported here."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache

#: By module and name.
BASES = {("torch.autograd.function", "Function"), ("torch.nn.modules.module", "Module")}

#: Where torch documents the members that a Function inherits, by the class that defines them.
_DOCUMENTED = {
    "Function": "torch.autograd.Function",
    "_SingleLevelFunction": "torch.autograd.Function",
    "FunctionCtx": "torch.autograd.function.FunctionCtx",
    "_FunctionBase": "torch.autograd.graph.Node",
}


def torch_base(obj: object) -> type | None:
    """Return torch's class among the bases of a class, or None."""
    if not isinstance(obj, type):
        return None
    return next((base for base in obj.__mro__[1:] if (base.__module__, base.__name__) in BASES), None)


def inherited_names(cls: type) -> Iterator[str]:
    """Yield the names that a class has only from torch: the public ones, and `__init__`."""
    for name in dir(cls):
        owner = owner_of(cls, name)
        if owner is not None and is_torch(owner) and (name == "__init__" or not name.startswith("_")):
            yield name


def owner_of(cls: type, name: str) -> type | None:
    """Return the class that defines a member."""
    return next((base for base in cls.__mro__ if name in vars(base)), None)


def is_torch(cls: type) -> bool:
    """Whether a class is torch's."""
    return cls.__module__.partition(".")[0] == "torch"


def documented_name(cls: type, name: str) -> str:
    """Return the name under which torch documents a member, as intersphinx knows it."""
    owner = owner_of(cls, name)
    where = _DOCUMENTED.get(owner.__name__, "") if owner else ""
    return f"{where or 'torch.autograd.Function'}.{name}"


@cache
def boilerplate(base: type) -> frozenset[str]:
    """Return the docstrings of a class of torch and of all its members, spaces normalised."""
    found = [cls.__doc__ for cls in base.__mro__ if cls is not object]
    for cls in base.__mro__:
        if cls is not object:
            found += [getattr(member, "__doc__", None) for member in vars(cls).values()]
    return frozenset(normalised(inspect.cleandoc(text)) for text in found if isinstance(text, str) and text.strip())


def normalised(text: str) -> str:
    """Return text with single spaces, for comparing."""
    return " ".join(text.split())
