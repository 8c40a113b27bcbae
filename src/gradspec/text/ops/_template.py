"""A template with places for Variables; braces anywhere else, in its text or in what is put in, are only braces."""

from __future__ import annotations

import re
from typing import Any

from gradspec.text._function import Function
from gradspec.text._variable import Variable


class Fill(Function):
    """Put values into the places of a template, and pass the gradient on to the template and to each value."""

    @staticmethod
    def forward(ctx: Any, template: Variable | str, values: dict[str, Any]) -> Variable:
        """Return the template with each `{name}` replaced, all at once: what was put in is not looked into."""
        text = template.data if isinstance(template, Variable) else template
        role = template.role if isinstance(template, Variable) else ""
        missing = [name for name in values if f"{{{name}}}" not in str(text)]
        if missing:
            raise ValueError(f"the template has no place for {', '.join(missing)}: it is {text!r}")
        ctx.names = list(values)
        ctx.template = isinstance(template, Variable)
        if not values:
            return Variable(text, role=role)
        places = re.compile("|".join(re.escape(f"{{{name}}}") for name in values))
        return Variable(places.sub(lambda place: str(values[place[0][1:-1]]), str(text)), role=role)

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> tuple[Variable | None, dict[str, Variable] | None]:
        """Return the gradient for the template and for each value."""
        template, values = ctx.needs_input_grad
        return grad_out if template else None, dict.fromkeys(ctx.names, grad_out) if values else None


def fill(template: Variable | str, **values: Any) -> Variable:
    """Return a template with `{name}` replaced by the value of that name; other braces stay as they are.

    Args:
        template: A text, as a Variable if it is to be learned.
        **values: Variables, texts or numbers.

    Raises:
        ValueError: the template has no place for a name.

    Example:
        >>> from gradspec.text import Variable
        >>> fill('Answer as {"a": 1}: {question}', question=Variable("what is {x}?")).data
        'Answer as {"a": 1}: what is {x}?'
    """
    result: Variable = Fill.apply(template, values)
    return result
