"""A language model with a system prompt that can be learned."""

from __future__ import annotations

from gradspec.text.textgrad.autograd import LLMCall, Module
from gradspec.text.textgrad.engine.base import Engine
from gradspec.text.textgrad.variable import Variable


class BlackboxLLM(Module):
    """A language model that is called with a Variable.

    Args:
        engine: Who answers; a name, or None for the engine of `set_backward_engine`.
        system_prompt: The text before each input. A text is not a parameter; a Variable that requires grad is.

    Example:
        >>> prompt = Variable("Answer.", role_description="system prompt")
        >>> model = BlackboxLLM(lambda messages: "PARIS", system_prompt=prompt)
        >>> model(Variable("Capital of France?", role_description="question")).value, model.parameters() == [prompt]
        ('PARIS', True)
    """

    def __init__(self, engine: Engine | str | None = None, system_prompt: Variable | str | None = None) -> None:
        if isinstance(system_prompt, str):
            system_prompt = Variable(system_prompt, requires_grad=False, role_description="system prompt")
        self.system_prompt = system_prompt
        self.llm_call = LLMCall(engine, system_prompt)
        self.engine = self.llm_call.engine

    def parameters(self) -> list[Variable]:
        """Return the system prompt, if it can be learned."""
        return [self.system_prompt] if self.system_prompt is not None and self.system_prompt.requires_grad else []

    def forward(self, x: Variable) -> Variable:
        """Return the model's answer to a Variable."""
        return self.llm_call(x)
