"""One text as several; what is said of the pieces is put together with their places."""

from __future__ import annotations

from typing import Any

from gradspec.text._graph._function import Function
from gradspec.text._graph._merge import distinct
from gradspec.text._graph._variable import Variable


class Split(Function):
    """Split a text at a separator, and say in its gradient which piece each piece of feedback is about."""

    @staticmethod
    def forward(ctx: Any, x: Variable, separator: str | None = None, maxsplit: int = -1) -> tuple[Variable, ...]:
        """Return the pieces."""
        if not isinstance(x, Variable):
            raise TypeError(f"what is split is a Variable; write Variable({x!r})")
        if not isinstance(x.data, str):
            raise TypeError(f"only a text can be split, not {x!r}")
        if separator is not None and (not isinstance(separator, str) or not separator):
            raise ValueError(f"separator is a text that is not empty, or None for white space; not {separator!r}")
        pieces = x.data.split(separator, maxsplit)
        ctx.role, ctx.n = x.role, len(pieces)
        return tuple(Variable(piece, role=f"part {i + 1} of {x.role}".rstrip(" of")) for i, piece in enumerate(pieces))

    @staticmethod
    def backward(ctx: Any, *grads: Variable | None) -> tuple[Variable | None, None, None]:
        """Return the feedback on each piece, numbered; None where no piece got any."""
        # What was said of several pieces at once is said once: in k such calls one behind the other it came 2^k times.
        said: dict[int, tuple[Variable, list[int]]] = {}
        for number, grad in enumerate(grads, 1):
            for comment in () if grad is None else distinct(grad):
                said.setdefault(id(comment), (comment, []))[1].append(number)
        lines = [f"{_pieces(numbers)} of {ctx.n}: {comment.data}" for comment, numbers in said.values()]
        return Variable("\n".join(lines), role=f"feedback to {ctx.role}") if said else None, None, None


def _pieces(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"Part {numbers[0]}"
    return f"Parts {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def split(x: Variable, separator: str | None = None, maxsplit: int = -1) -> tuple[Variable, ...]:
    """Split a text at a separator; the feedback on it says which piece each remark is about.

    Args:
        x: The text.
        separator: Where to split; None is any white space.
        maxsplit: The most cuts; -1 for no limit.

    Raises:
        TypeError: what is split is not a text.
        ValueError: the separator is empty.

    Example:
        >>> from gradspec.text import Variable
        >>> x = Variable("red, green", role="colours", requires_grad=True)
        >>> red, green = split(x, ", ")
        >>> green.backward(Variable("too bright"))
        >>> x.grad.data
        'Part 2 of 2: too bright'
    """
    result: tuple[Variable, ...] = Split.apply(x, separator, maxsplit)
    return result
