"""Several texts as one, several numbers as their sum; what is said of the result is said of each."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from typing import Any

from gradspec.text._data import Kind, kind
from gradspec.text._graph._deferred import derived, given, now, variable_of
from gradspec.text._graph._function import Function
from gradspec.text._graph._merge import kind_of, role_of
from gradspec.text._graph._variable import Variable

TEXT: Kind = (str, None)
NUMBER: Kind = (float, None)


class Join(Function):
    """Join texts by a separator, or add numbers, and pass the gradient on to each as it is."""

    @staticmethod
    def forward(ctx: Any, variables: list[Any], separator: str = "") -> Variable:
        """Return the texts in one, or the sum of the numbers."""
        ctx.n = len(variables)
        role = role_of(value.role for value in variables if isinstance(value, Variable))
        items = [given(value) for value in variables]
        kinds = {_kind(value) for value in variables}
        if kinds <= {TEXT}:
            data = derived(items, lambda: separator.join([now(item) for item in items]), TEXT)
        elif kinds == {NUMBER}:
            data = derived(items, lambda: builtins.sum([now(item) for item in items]), NUMBER)
        else:
            raise TypeError(f"only texts or only numbers can be put together, not {variables!r}")
        return variable_of(data, role)

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> tuple[list[Variable], None]:
        """Return the gradient for each."""
        return [grad_out] * ctx.n, None


def _kind(value: Any) -> Kind | None:
    if isinstance(value, Variable):
        return kind_of(value)
    return kind(value) if isinstance(value, str | int | float) else None


def join(variables: Iterable[Variable | str], separator: str = "") -> Variable:
    """Join texts by a separator; what is said of the result is said of each.

    Args:
        variables: Variables that hold a text, and plain texts.
        separator: What is between two of them.

    Raises:
        TypeError: one is not text.

    Example:
        >>> from gradspec.text import Variable
        >>> join([Variable("a"), "b", Variable("c")], ", ").data
        'a, b, c'
    """
    if isinstance(variables, Variable | str) or not isinstance(variables, Iterable):
        raise TypeError(f"variables is a list of texts or numbers; write [{variables!r}]")
    if not isinstance(separator, str):
        raise TypeError(f"separator is a text, not {separator!r}")
    result: Variable = Join.apply(list(variables), separator)
    return result


def sum(variables: Iterable[Variable]) -> Variable:  # noqa: A001 -- what it does is what the built-in one does
    r"""Add numbers, or put texts together a line each: how the losses of a batch become one loss.

    Raises:
        TypeError: they are not all texts or all numbers.

    Example:
        >>> from gradspec.text import Variable
        >>> sum([Variable(1), Variable(2.5)]).data
        3.5
        >>> sum([Variable("a"), Variable("b")]).data
        'a\nb'
    """
    return join(variables, "\n")
