"""A function of yours in the graph: a language model says what should change in its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from gradspec.text import Function, defer
from gradspec.text import Variable as Plain
from gradspec.text.lm import complete
from gradspec.text.ops._template import filled
from gradspec.text.textgrad._backward import SEED
from gradspec.text.textgrad.config import Backward
from gradspec.text.textgrad.variable import Variable

#: What the engine is asked: {purpose} {inputs} {output} {feedback} {role} {value}.
ASKED = (
    "A function was called. What it is for: {purpose}\n\n<inputs>\n{inputs}\n</inputs>\n\n<output>\n{output}\n</output>"
    "\n\nThis was said of the output:\n\n<comment>\n{feedback}\n</comment>\n\nOne of the inputs can be changed. It is "
    "the {role}:\n\n<input>\n{value}\n</input>\n\nSay in a few sentences what should change in this input, so that the "
    "comment would no longer apply to the output. Do not rewrite it."
)


class StringBasedFunction:
    """Put a function into the graph; on the way back a language model is asked about each of its inputs.

    Args:
        fn: Takes Variables by name, and returns a text or a number.
        function_purpose: What it is for, in words.

    Example:
        >>> def longer(text):
        ...     return len(text.value)
        >>> length = StringBasedFunction(longer, "the length of a text")
        >>> length({"text": Variable("four", role_description="text")}).value
        4
    """

    def __init__(self, fn: Callable[..., Any], function_purpose: str) -> None:
        self.fn, self.function_purpose = fn, function_purpose

    def forward(self, inputs: Mapping[str, Variable], response_role_description: str | None = None) -> Variable:
        """Return what the function returns.

        Args:
            inputs: The Variables, by name.
            response_role_description: The role of the result; None says what the function is for.
        """
        role = response_role_description or f"result of the function whose purpose is: {self.function_purpose}"
        given = {name: view.plain for name, view in inputs.items()}
        plain = _Called.apply(given, dict(inputs), self.fn, self.function_purpose, role)
        return Variable.of(plain, [*inputs.values()])

    def __call__(self, *args: Any, **kwargs: Any) -> Variable:
        """Return what `forward` returns."""
        return self.forward(*args, **kwargs)


class _Called(Function):
    io_bound = True

    @staticmethod
    def forward(
        ctx: Any, given: dict[str, Plain], views: dict[str, Variable], fn: Callable[..., Any], purpose: str, role: str
    ) -> Plain:
        returned = fn(**views)
        data = returned.value if isinstance(returned, Variable) else returned
        ctx.names, ctx.purpose, ctx.output = list(given), purpose, str(data)
        ctx.save_for_backward(*given.values())
        return Plain(data, role=role)

    @staticmethod
    def backward(ctx: Any, grad_out: Plain) -> tuple[Any, ...]:
        given = dict(zip(ctx.names, ctx.saved_variables, strict=True))
        # A number has the gradient 1 to begin with, which says nothing in words.
        feedback = grad_out.data if isinstance(grad_out.data, str) else SEED
        values = {
            "purpose": ctx.purpose,
            "inputs": "\n".join(f"{name}: {variable.data}" for name, variable in given.items()),
            "output": ctx.output,
            "feedback": feedback,
        }
        asked = {
            name: defer(partial(_said, {**values, "role": variable.role, "value": variable.data}, variable.role))
            if ctx.wants(variable)
            else None
            for name, variable in given.items()
        }
        return asked, None, None, None, None


def _said(values: dict[str, Any], role: str) -> Plain:
    return Plain(complete(Backward(), filled(ASKED, values)).text, role=f"feedback to {role}")
