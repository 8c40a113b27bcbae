"""A template with places for Variables; braces anywhere else, in its text or in what is put in, are only braces."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

from gradspec.text._graph._deferred import derived, given, now, variable_of
from gradspec.text._graph._function import Function
from gradspec.text._graph._variable import Variable

#: The names that were put into each template that is learned: a new text has to keep their places.
_FILLED: WeakKeyDictionary[Variable, frozenset[str]] = WeakKeyDictionary()


class Fill(Function):
    """Put values into the places of a template, and pass the gradient on to the template and to each value."""

    @staticmethod
    def forward(ctx: Any, template: Variable | str, values: dict[str, Any]) -> Variable:
        """Return the template with each `{name}` replaced, all at once: what was put in is not looked into."""
        role = template.role if isinstance(template, Variable) else ""
        ctx.names = list(values)
        text, inside = given(template), {name: given(value) for name, value in values.items()}
        data = derived(
            [text, *inside.values()],
            lambda: filled(str(now(text)), {name: now(value) for name, value in inside.items()}),
            (str, None),
        )
        return variable_of(data, role)

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> tuple[Variable | None, dict[str, Variable] | None]:
        """Return the gradient for the template and for each value."""
        template, values = ctx.needs_input_grad
        return grad_out if template else None, dict.fromkeys(ctx.names, grad_out) if values else None


def filled(template: str, values: Mapping[str, Any]) -> str:
    """Return a template with its places filled, where nothing is to be differentiated."""
    pieces, missing = _pieces(template, tuple(values))
    if missing:
        raise ValueError(f"the template has no place for {', '.join(missing)}: it is {template!r}")
    parts = [*pieces]
    for name in pieces[1::2]:
        if values[name] is None:
            raise TypeError(f"the place {{{name}}} of a template takes a text or a number, not None")
    parts[1::2] = [str(values[name]) for name in pieces[1::2]]
    return "".join(parts)


@lru_cache(maxsize=32)
def _pieces(template: str, names: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return the text between the places and the names in them, by turns, and the names that have no place."""
    if not names:
        return [template], []
    pieces = re.split(r"\{(" + "|".join(map(re.escape, names)) + r")\}", template)
    return pieces, [name for name in names if name not in pieces[1::2]]


def fill(template: Variable | str, **values: Any) -> Variable:
    """Put values into the places of a template; braces anywhere else are only braces.

    Args:
        template: A text, as a Variable if it is to be learned.
        **values: Variables, texts or numbers.

    Raises:
        ValueError: the template has no such place.
        TypeError: a value is None.

    Example:
        >>> from gradspec.text import Variable
        >>> fill('Answer as {"a": 1}: {question}', question=Variable("what is {x}?")).data
        'Answer as {"a": 1}: what is {x}?'
    """
    if not isinstance(template, Variable | str):
        raise TypeError(f"a template is a text or a Variable, not {template!r}")
    if isinstance(template, Variable) and template.requires_grad:
        _FILLED[template] = _FILLED.get(template, frozenset()) | values.keys()
    result: Variable = Fill.apply(template, values)
    return result


def lost_places(template: Variable, text: str) -> list[str]:
    """Return the places of a template that a program has filled, and that another text does not have."""
    places = (f"{{{name}}}" for name in sorted(_FILLED.get(template, ())))
    return [place for place in places if place not in text]
