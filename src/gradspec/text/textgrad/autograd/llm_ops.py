"""Calls of a language model, which feedback goes back through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from string import Formatter
from typing import Any

from gradspec.text.ops import chat
from gradspec.text.textgrad.config import Backward, validate_engine_or_get_default
from gradspec.text.textgrad.engine.base import Engine, model_of
from gradspec.text.textgrad.variable import Variable

ROLE = "answer of the language model"


class LLMCall:
    """A call of a language model: on the way back it is asked what should change in the input and the system prompt.

    Args:
        engine: Who answers; a name, or None for the engine of `set_backward_engine`.
        system_prompt: The text before the input.

    Example:
        >>> from gradspec.text.textgrad.autograd import LLMCall
        >>> answer = LLMCall(lambda messages: "PARIS")(Variable("Capital of France?", role_description="question"))
        >>> answer.value, [str(variable) for variable in answer.predecessors]
        ('PARIS', ['Capital of France?'])
    """

    def __init__(self, engine: Engine | str | None, system_prompt: Variable | None = None) -> None:
        self.engine = validate_engine_or_get_default(engine)
        self.system_prompt = system_prompt

    def forward(self, input_variable: Variable, response_role_description: str = ROLE) -> Variable:
        """Return the answer to an input.

        Args:
            input_variable: What the model is asked.
            response_role_description: The role of the answer.
        """
        if not isinstance(input_variable, Variable):
            raise TypeError(f"a call of a language model takes a Variable, not {input_variable!r}")
        return self._answer([input_variable], response_role_description)

    def __call__(self, *args: Any, **kwargs: Any) -> Variable:
        """Return what `forward` returns."""
        return self.forward(*args, **kwargs)

    def _answer(self, pieces: Iterable[Variable | str], role: str) -> Variable:
        content = [*pieces]
        system = [] if self.system_prompt is None else [self.system_prompt]
        messages = [{"role": "system", "content": prompt.plain} for prompt in system]
        said = [piece.plain if isinstance(piece, Variable) else piece for piece in content]
        plain = chat(
            model_of(self.engine), [*messages, {"role": "user", "content": said}], role=role, backward_model=Backward()
        )
        return Variable.of(plain, [*system, *dict.fromkeys(piece for piece in content if isinstance(piece, Variable))])


class FormattedLLMCall(LLMCall):
    """A call of a language model with a template; what should change is asked of each Variable in it.

    Args:
        engine: Who answers.
        format_string: The template, with `{name}` for each field, as for `str.format`.
        fields: The names of the fields, as the keys of a dict.
        system_prompt: The text before it.

    Raises:
        ValueError: the template has another field, lacks one, or asks for a conversion.

    Example:
        >>> call = FormattedLLMCall(lambda messages: "8", "Add {x} and {y}.", {"x": None, "y": None})
        >>> call({name: Variable("4", role_description=name) for name in "xy"}).value
        '8'
    """

    def __init__(
        self,
        engine: Engine | str | None,
        format_string: str,
        fields: Mapping[str, Any],
        system_prompt: Variable | None = None,
    ) -> None:
        super().__init__(engine, system_prompt)
        self.format_string, self.fields = format_string, dict(fields)
        self._pieces = [*Formatter().parse(format_string)]
        for _, name, spec, conversion in self._pieces:
            if spec or conversion:
                raise ValueError(f"a field of the template is {{name}} alone; {name!r} has more in its braces")
        named = {name for _, name, _, _ in self._pieces if name is not None}
        if named != set(self.fields):
            raise ValueError(f"the template has the fields {sorted(named)}, and fields are {sorted(self.fields)}")

    def forward(self, inputs: Mapping[str, Variable], response_role_description: str = ROLE) -> Variable:  # type: ignore[override]  # as in TextGrad
        """Return the answer to the template, filled.

        Args:
            inputs: A Variable for each field.
            response_role_description: The role of the answer.

        Raises:
            ValueError: the inputs are not those of the fields.
        """
        if set(inputs) != set(self.fields):
            raise ValueError(f"the fields are {sorted(self.fields)}, and the inputs are {sorted(inputs)}")
        pieces: list[Variable | str] = []
        for text, name, _, _ in self._pieces:
            pieces += [text] if name is None else [text, inputs[name]]
        return self._answer(pieces, response_role_description)
