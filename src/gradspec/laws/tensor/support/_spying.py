"""Record what torch passes to a method of a Function, and what the method returns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gradspec.laws.tensor.support._call import outputs


@contextmanager
def spying(cls: type, method: str) -> Iterator[list[tuple[tuple[Any, ...], tuple[Any, ...]]]]:
    """Record the arguments and the returned values of a static method of a Function, as torch sees them."""
    calls: list[tuple[tuple[Any, ...], tuple[Any, ...]]] = []
    original = getattr(cls, method)

    def spy(*args: Any) -> Any:
        returned = original(*args)
        calls.append((args, outputs(returned)))
        return returned

    with in_place_of(cls, method, staticmethod(spy)):
        yield calls


@contextmanager
def within(cls: type, method: str, context: Any) -> Iterator[None]:
    """Run a static method of a Function within a context that may be entered more than once."""
    original = getattr(cls, method)

    def entered(*args: Any) -> Any:
        with context:
            return original(*args)

    with in_place_of(cls, method, staticmethod(entered)):
        yield


@contextmanager
def in_place_of(cls: Any, method: str, other: Any) -> Iterator[None]:
    """Give a Function another method, or a module another function, for a while."""
    own = vars(cls).get(method)
    setattr(cls, method, other)
    try:
        yield
    finally:
        if own is None:
            delattr(cls, method)
        else:
            setattr(cls, method, own)
