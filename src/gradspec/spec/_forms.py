"""Error messages for a call that fits no form of a constructor: the form that is meant, in one line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import wraps
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)
#: How a value of a class is written.
FORMS: dict[type, str] = {}


def forms(said: str) -> Callable[[Class], Class]:
    """Let a class say how it is made where a call does not fit its constructor.

    Args:
        said: the form, as `FunctionSpec(Cube.apply, cube, cases=[(x, 0.5)])`.
    """

    def decorated(cls: Class) -> Class:
        made = cls.__init__  # type: ignore[misc]
        signature = inspect.signature(made)

        @wraps(made)
        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            try:
                signature.bind(self, *args, **kwargs)
            except TypeError as error:
                why = next(_strange(kwargs, signature), str(error))
                raise TypeError(f"{type(self).__name__}: {why}; write {said}") from None
            made(self, *args, **kwargs)

        cls.__init__ = init  # type: ignore[misc]
        FORMS[cls] = said
        return cls

    return decorated


def _strange(kwargs: dict[str, Any], signature: inspect.Signature) -> Iterator[str]:
    """Yield what is said of each keyword that there is not."""
    for name in kwargs:
        if name not in signature.parameters:
            near = get_close_matches(name, [*signature.parameters][1:], 1)
            yield f"there is no {name!r}{f', did you mean {near[0]!r}?' if near else ''}"
