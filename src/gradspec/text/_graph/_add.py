"""`+`: texts one behind the other, numbers added; what is said of the result is said of both."""

from __future__ import annotations

from typing import Any

from gradspec.text._data import Kind
from gradspec.text._graph._deferred import derived, given, now, variable_of, waits
from gradspec.text._graph._function import Function
from gradspec.text._graph._merge import kind_of, role_of
from gradspec.text._graph._variable import Variable


class Add(Function):
    """Concatenate two texts, or add two numbers, and pass the gradient on to both as it is.

    Lists are added place by place.

    Example:
        >>> from gradspec.text import Variable
        >>> (Variable("a", role="letter") + "b").data
        'ab'
    """

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Variable:
        """Return `x + y`."""
        role = role_of(value.role for value in (x, y) if isinstance(value, Variable))
        if (waits(x) or waits(y)) and kind_of_side(x) == kind_of_side(y) == (str, None):
            sides = [given(x), given(y)]
            return variable_of(derived(sides, lambda: now(sides[0]) + now(sides[1]), (str, None)), role)
        left: Any = x.data if isinstance(x, Variable) else x
        right: Any = y.data if isinstance(y, Variable) else y
        if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
            data: Any = [a + b for a, b in zip(left, right, strict=True)]
        elif isinstance(left, list) or isinstance(right, list) or isinstance(left, str) is not isinstance(right, str):
            hint = "; gradspec.text.ops.sum puts several texts together" if left == 0 else ""
            raise TypeError(f"cannot add {x!r} and {y!r}: both must be texts, or numbers, or lists of one length{hint}")
        else:
            data = left + right
        return Variable(data, role=role)

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> tuple[Variable | None, ...]:
        """Return the gradient for each of the two."""
        return tuple(grad_out if needed else None for needed in ctx.needs_input_grad)


def kind_of_side(value: Any) -> Kind | None:
    """Return the kind of a side, without waiting for its data."""
    if isinstance(value, Variable):
        return kind_of(value)
    return (str, None) if isinstance(value, str) else None


def add(x: Variable | str | float, y: Variable | str | float) -> Variable:
    """Put two texts one behind the other, or add two numbers; what is said of the result is said of both.

    Raises:
        TypeError: one is a text and the other a number, or lists of different lengths.

    Example:
        >>> from gradspec.text import Variable
        >>> add("Be ", Variable("short")).data
        'Be short'
    """
    result: Variable = Add.apply(x, y)
    return result
