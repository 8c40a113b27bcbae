"""The calls as functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradspec.text import ops
from gradspec.text.textgrad.autograd.llm_ops import ROLE, FormattedLLMCall, LLMCall
from gradspec.text.textgrad.engine.base import Engine
from gradspec.text.textgrad.variable import Variable


def sum(variables: Sequence[Variable]) -> Variable:  # noqa: A001 -- TextGrad's name
    r"""Return texts as one, a line each; what is said of it is said of each of them, once.

    Args:
        variables: The Variables.

    Raises:
        TypeError: one of them is not a Variable.

    Example:
        >>> sum([Variable(text, role_description=text) for text in "ab"]).value
        'a\nb'
    """
    for variable in variables:
        if not isinstance(variable, Variable):
            raise TypeError(f"sum takes a list of Variables, and this is one of them: {variable!r}")
    plain = ops.sum([variable.plain for variable in variables])
    roles = dict.fromkeys(variable.role_description for variable in variables)
    plain.role = f"a combination of the following: {', '.join(roles)}"
    return Variable.of(plain, [*dict.fromkeys(variables)])


def llm_call(
    input_variable: Variable,
    engine: Engine | str | None,
    response_role_description: str = ROLE,
    system_prompt: Variable | None = None,
) -> Variable:
    """Return the answer to an input: `LLMCall(engine, system_prompt)(input_variable)`."""
    return LLMCall(engine, system_prompt)(input_variable, response_role_description)


def formatted_llm_call(
    inputs: Mapping[str, Variable],
    response_role_description: str,
    engine: Engine | str | None,
    format_string: str,
    fields: Mapping[str, Any],
    system_prompt: Variable | None = None,
) -> Variable:
    """Return the answer to a template: `FormattedLLMCall(engine, format_string, fields, system_prompt)(inputs)`."""
    return FormattedLLMCall(engine, format_string, fields, system_prompt)(inputs, response_role_description)
