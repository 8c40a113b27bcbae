"""The arguments of a Function's call: one slot for each parameter of its forward, and the Variables inside."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gradspec.text._engine._node import Edge, accumulator
from gradspec.text._graph._variable import Variable

#: What is looked into for Variables; a set only to refuse it.
CONTAINERS = (list, tuple, dict, set, frozenset)


@dataclass(frozen=True, kw_only=True)
class Nested:
    """A list, tuple or dict in which there are Variables."""

    #: What is at each place: how many Variables, directly or in a container of its own.
    items: dict[Any, int | Nested]
    is_dict: bool
    #: The number of items, with and without Variables.
    length: int


@dataclass(frozen=True, kw_only=True)
class Call:
    """How a Function's forward is called: found out once for each class."""

    signature: inspect.Signature
    #: Whether `setup_context` is overridden, and forward takes no ctx.
    separate: bool
    #: The number of plain parameters; a call with as many positional arguments needs no binding.
    plain: int = field(default=-1)

    @classmethod
    def of(cls, forward: Callable[..., Any], *, separate: bool) -> Call:
        """Read the signature of a forward."""
        signature = inspect.signature(forward)
        parameters = list(signature.parameters.values())
        if not separate:
            if not parameters or parameters[0].kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD):
                raise TypeError(
                    f"{forward.__qualname__}{signature} takes no ctx; give it one as its first parameter, or override "
                    "setup_context"
                )
            if parameters[0].kind is not inspect.Parameter.VAR_POSITIONAL:
                parameters = parameters[1:]
        only_plain = all(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
        return cls(
            signature=signature.replace(parameters=parameters),
            separate=separate,
            plain=len(parameters) if only_plain else -1,
        )

    def bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], tuple[Any, ...], dict[str, Any], int]:
        """Return the slots in the order of the signature, how to call forward, and how many slots were given.

        A default that was left out has a slot of its own; the last value says how many slots come before the first
        of those at the end, whose gradients a backward may leave out too.
        """
        bound = self.signature.bind(*args, **kwargs)
        given = set(bound.arguments)
        bound.apply_defaults()
        slots: list[Any] = []
        needed = 0
        for name, value in bound.arguments.items():
            match self.signature.parameters[name].kind:
                case inspect.Parameter.VAR_POSITIONAL:
                    slots += value
                case inspect.Parameter.VAR_KEYWORD:
                    slots += value.values()
                case _:
                    slots.append(value)
            if name in given:
                needed = len(slots)
        return tuple(slots), bound.args, bound.kwargs, needed


def edge_of(variable: Variable) -> Edge:
    """Return where the gradient of a Variable goes."""
    if not variable._requires_grad:
        return (None, 0)
    return (variable._grad_fn or accumulator(variable), variable._output_nr)


def variables_in(value: Any, found: list[Variable]) -> Nested | None:
    """Append the Variables in a container, and return where they are; None if there are none."""
    if isinstance(value, set | frozenset):
        if any(isinstance(item, Variable) for item in value):
            raise TypeError("a set that holds Variables has no order for their gradients; pass a list")
        return None
    is_dict = isinstance(value, dict)
    items: dict[Any, int | Nested] = {}
    for place, item in value.items() if is_dict else enumerate(value):
        if isinstance(item, Variable):
            found.append(item)
            items[place] = 1
        elif isinstance(item, CONTAINERS):
            inner = variables_in(item, found)
            if inner is not None:
                items[place] = inner
    return Nested(items=items, is_dict=is_dict, length=len(value)) if items else None


def count_of(slot: int | Nested | None) -> int:
    """Return how many Variables there are in an argument."""
    if isinstance(slot, Nested):
        return sum(count_of(inner) for inner in slot.items.values())
    return slot or 0
