"""Support renamed arguments and fields for one release, with a warning that gives the new name."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)


def renamed(**names: str) -> Callable[[Class], Class]:
    """Let a dataclass take fields, and show fields and methods, under their old names, with a `DeprecationWarning`.

    Args:
        names: the new name of each old one.
    """

    def decorated(cls: Class) -> Class:
        made = cls.__init__  # type: ignore[misc]

        @wraps(made)
        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            for old, new in names.items():
                if old in kwargs:
                    _warn(cls, old, new)
                    kwargs[new] = kwargs.pop(old)
            made(self, *args, **kwargs)

        cls.__init__ = init  # type: ignore[misc]
        for old, new in names.items():
            setattr(cls, old, _shown(cls, old, new))
        return cls

    return decorated


def old_names(module: str, **names: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module that shows its objects under their old names, with a `DeprecationWarning`.

    Args:
        module: its `__name__`.
        names: the new name of each old one.
    """

    def shown(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(f"{module}.{name} is called {names[name]} now", DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], names[name])

    return shown


def _shown(cls: type, old: str, new: str) -> property:
    def get(self: Any) -> Any:
        _warn(cls, old, new)
        return getattr(self, new)

    get.__doc__ = f"The old name of `{new}`, until the next release."
    return property(get)


def _warn(cls: type, old: str, new: str) -> None:
    warnings.warn(f"{cls.__name__}.{old} is called {new} now", DeprecationWarning, stacklevel=3)
