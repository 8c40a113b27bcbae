"""What torch hands to a method of a Function, and what comes back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gradspec.laws.tensor.support._call import outputs


@contextmanager
def spying(cls: type, method: str) -> Iterator[list[tuple[tuple[Any, ...], tuple[Any, ...]]]]:
    """Record the arguments and the returned values of a static method of a Function, as torch sees them."""
    calls: list[tuple[tuple[Any, ...], tuple[Any, ...]]] = []
    own = vars(cls).get(method)
    original = getattr(cls, method)

    def spy(*args: Any) -> Any:
        returned = original(*args)
        calls.append((args, outputs(returned)))
        return returned

    setattr(cls, method, staticmethod(spy))
    try:
        yield calls
    finally:
        if own is None:
            delattr(cls, method)
        else:
            setattr(cls, method, own)
