"""Optimizers: a language model rewrites what something was said of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gradspec._one_line import for_log, visible
from gradspec.text import optim
from gradspec.text.lm import Completion, Message, Model, complete
from gradspec.text.ops import PROMPTS
from gradspec.text.textgrad.config import validate_engine_or_get_default
from gradspec.text.textgrad.engine.base import Engine, model_of
from gradspec.text.textgrad.variable import Variable

#: Between what an engine writes the new text, unless told: recorded answers of TextGrad's have these.
TAGS = ("<IMPROVED_VARIABLE>", "</IMPROVED_VARIABLE>")
OURS = ("<new>", "</new>")


class Optimizer(ABC):
    """Base class of optimizers.

    Args:
        parameters: The Variables that are rewritten.
    """

    def __init__(self, parameters: Sequence[Variable]) -> None:
        for parameter in parameters:
            if not isinstance(parameter, Variable):
                raise TypeError(f"a parameter is a Variable, not {parameter!r}")
        self.parameters = list(parameters)

    def zero_grad(self) -> None:
        """Forget what was said of the parameters."""
        for parameter in self.parameters:
            parameter.reset_gradients()

    @abstractmethod
    def step(self) -> None:
        """Rewrite the parameters; to be overridden."""


class TextualGradientDescent(Optimizer):
    """Let a language model rewrite each parameter that something was said of.

    The model sees the whole parameter and all its feedback. A parameter without feedback costs no call.

    Args:
        parameters: The Variables that are rewritten; each requires grad.
        verbose: Above 0, each new text is printed.
        engine: Who rewrites; a name, or None for the engine of `set_backward_engine`.
        constraints: What a new text must keep to, in words.
        new_variable_tags: The tags between which the engine writes it.
        optimizer_system_prompt: What the engine is told before.
        in_context_examples: Texts of the form that is wanted.
        gradient_memory: How many earlier texts, with what was said of them, the engine sees too.

    Raises:
        TypeError: a parameter is not a Variable that requires grad.
        ValueError: there are no parameters, or not two tags.

    Example:
        >>> prompt = Variable("Answer.", role_description="system prompt")
        >>> prompt.gradients.add(Variable("Ask for short answers.", role_description="feedback"))
        >>> def engine(messages):
        ...     return "<IMPROVED_VARIABLE>Answer briefly.</IMPROVED_VARIABLE>"
        >>> TextualGradientDescent([prompt], engine=engine).step()
        >>> prompt.value
        'Answer briefly.'
    """

    def __init__(
        self,
        parameters: Sequence[Variable],
        verbose: int = 0,
        engine: Engine | str | None = None,
        constraints: Sequence[str] | None = None,
        new_variable_tags: Sequence[str] | None = None,
        optimizer_system_prompt: str = "",
        in_context_examples: Sequence[str] | None = None,
        gradient_memory: int = 0,
    ) -> None:
        super().__init__(parameters)
        tags = tuple(new_variable_tags or TAGS)
        if len(tags) != 2:
            raise ValueError(f"new_variable_tags are the opening and the closing tag, not {new_variable_tags!r}")
        self._tags = tags
        self.engine, self.verbose = validate_engine_or_get_default(engine), verbose
        examples = [f"It has the form of this example: {example}" for example in in_context_examples or ()]
        self._steps = optim.TextualGradientDescent(
            [parameter.plain for parameter in self.parameters],
            _tagged(model_of(self.engine), tags, optimizer_system_prompt),
            constraints=[*(constraints or ()), *examples],
            momentum=gradient_memory,
            prompts=replace(
                PROMPTS, update=_renamed(PROMPTS.update, OURS, tags), repair=_renamed(PROMPTS.repair, OURS, tags)
            ),
        )

    def step(self) -> None:
        """Give each parameter its new text: all of them, or after an error none.

        Raises:
            ValueError: the engine twice wrote no text between the tags.
        """
        try:
            self._steps.step()
        except ValueError as error:
            raise ValueError(_renamed(str(error), OURS, self._tags)) from None
        if self.verbose:
            for parameter in self.parameters:
                print(for_log(visible(f"{parameter.role_description}: {parameter.value}")))


class TextualGradientDescentwithMomentum(TextualGradientDescent):
    """Textual gradient descent that remembers.

    Args:
        engine: Who rewrites.
        parameters: The Variables that are rewritten.
        momentum_window: How many earlier texts, with what was said of them, the engine sees too.
        **options: As for `TextualGradientDescent`.
    """

    def __init__(
        self, engine: Engine | str | None, parameters: Sequence[Variable], momentum_window: int = 0, **options: Any
    ) -> None:
        super().__init__(parameters, engine=engine, gradient_memory=momentum_window, **options)


#: The short name.
TGD = TextualGradientDescent


def _tagged(model: Model, tags: Sequence[str], system_prompt: str) -> Model:
    """Return a model that is told of tags of the user's, and answers with ours."""

    def told(messages: tuple[Message, ...]) -> Completion:
        system = [Message(role="system", content=system_prompt)] if system_prompt else []
        answer = complete(model, [*system, *messages])
        return replace(answer, text=_renamed(answer.text, tags, OURS))

    told.counts = True  # type: ignore[attr-defined]  # the model inside counts
    return told


def _renamed(text: str, old: Sequence[str], new: Sequence[str]) -> str:
    for before, after in zip(old, new, strict=True):
        text = text.replace(before, after)
    return text
