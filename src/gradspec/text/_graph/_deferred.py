"""Deferred operations: computed at once, or as soon as their inputs are there while the program goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradspec.text._data import Kind
from gradspec.text._graph._merge import kind_of
from gradspec.text._graph._variable import Variable
from gradspec.text._scheduling._overlap import block, overlap, scheduler
from gradspec.text._scheduling._pending import Pending
from gradspec.text._scheduling._position import fork


def given(value: Any) -> Any:
    """Return the data of an argument as it is now, or the Pending that it will come from.

    What is assigned to a Variable after the call changes nothing in the call.
    """
    if not isinstance(value, Variable):
        return value
    if waits(value):
        return value._pending
    return list(value.data) if isinstance(value.data, list) else value.data


def waits(value: Any) -> bool:
    """Return whether the data of an argument is on its way."""
    return isinstance(value, Variable) and value._data is None and value._pending is not None


def now(value: Any) -> Any:
    """Return the data of what `given` returned."""
    return value.result() if isinstance(value, Pending) else value


def length_of(value: Any) -> int | None:
    """Return how many texts a Variable holds, without waiting for them; None for a single one."""
    return kind_of(value)[1] if isinstance(value, Variable) else None


def computed(
    inputs: Sequence[Any],
    calls: Callable[[], Sequence[Callable[[], Any]]],
    combine: Callable[[list[Any]], Any],
    kind: Kind,
    *,
    asks: bool = True,
) -> Any:
    """Return what `combine` makes of the results of calls, or a Pending of it where calls overlap.

    Args:
        inputs: What `given` returned of the arguments; `calls` is called once all of it is there.
        calls: Returns the calls, which may overlap.
        combine: Makes the value of their results.
        kind: The kind of the value.
        asks: Whether the calls wait for a model. Others are made at once on an event loop: a function of the user's may
            not like another thread.
    """
    needs = [value for value in inputs if isinstance(value, Pending)]
    current = scheduler() if asks or needs else block()
    with fork():
        if current is None:
            return combine(overlap(calls()))
        return current.start(kind, needs, calls, combine)


def derived(inputs: Sequence[Any], compute: Callable[[], Any], kind: Kind) -> Any:
    """Return what is computed of inputs without a call: at once, unless one of them is still on its way."""
    needs = [value for value in inputs if isinstance(value, Pending)]
    current = scheduler() if needs else None
    if current is None:
        return compute()
    return current.start(kind, needs, tuple, lambda _: compute())


def variable_of(value: Any, role: str) -> Variable:
    """Return a Variable of what was computed, or is on its way."""
    return Variable._deferred(value, role) if isinstance(value, Pending) else Variable(value, role)
