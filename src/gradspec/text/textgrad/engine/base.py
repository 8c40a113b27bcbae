"""Engines, which are asked, under TextGrad's names; how they and the models of `gradspec.text.lm` become each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

from gradspec.text.lm import Message, Model, complete


class EngineLM(ABC):
    """Base class of engines: a prompt and a system prompt go in, a text comes out."""

    #: What `generate` is told where a call has no system prompt; empty for nothing.
    system_prompt: str = ""
    #: The name of the model.
    model_string: str = ""

    @abstractmethod
    def generate(self, prompt: str, system_prompt: str | None = None, **options: Any) -> str:
        """Return the answer to a prompt; to be overridden."""

    def __call__(self, prompt: str, system_prompt: str | None = None, **options: Any) -> str:
        """Return what `generate` returns."""
        return self.generate(prompt, system_prompt=system_prompt, **options)


#: Who can be asked: an engine, or any model of `gradspec.text.lm`.
Engine: TypeAlias = EngineLM | Callable[..., Any]


class ModelEngine(EngineLM):
    """A model of `gradspec.text.lm` as an engine.

    Args:
        model: Any callable that is a model, such as a `Client`.
        model_string: Its name.
        system_prompt: What the model is told where a call has no system prompt.

    Example:
        >>> ModelEngine(lambda messages: messages[-1].content.upper()).generate("quiet")
        'QUIET'
    """

    def __init__(self, model: Model, *, model_string: str = "", system_prompt: str = "") -> None:
        self.model, self.model_string, self.system_prompt = model, model_string, system_prompt

    def generate(self, prompt: str, system_prompt: str | None = None, **options: Any) -> str:
        """Return the model's answer.

        Args:
            prompt: What the user says.
            system_prompt: The text before it; None is the engine's own.
            **options: For the model: temperature, max_tokens...
        """
        system = self.system_prompt if system_prompt is None else system_prompt
        said = [Message(role="system", content=system)] if system else []
        return complete(self.model, [*said, Message(role="user", content=prompt)], **options).text


def model_of(engine: Engine) -> Model:
    """Return an engine as a model of `gradspec.text.lm`; any other callable is one already.

    Example:
        >>> class Loud(EngineLM):
        ...     def generate(self, prompt, system_prompt=None):
        ...         return prompt.upper()
        >>> model_of(Loud())([Message(role="user", content="quiet")])
        'QUIET'
    """
    if isinstance(engine, ModelEngine) and not engine.system_prompt:
        return engine.model
    if not callable(engine):
        raise TypeError(f"an engine is an EngineLM, a name, or any model of gradspec.text.lm, not {engine!r}")
    return _asked(engine) if hasattr(engine, "generate") else engine


def _asked(engine: Callable[..., Any]) -> Model:
    def model(messages: tuple[Message, ...]) -> Any:
        system = "\n\n".join(message.content for message in messages if message.role == "system")
        said = [message for message in messages if message.role != "system"]
        # An engine takes one prompt; only a call that is repeated with what was wrong has more.
        prompt = said[0].content if len(said) == 1 else "\n\n".join(f"{m.role}: {m.content}" for m in said)
        return engine(prompt, system_prompt=system) if system else engine(prompt)

    model.counts = isinstance(engine, ModelEngine)  # type: ignore[attr-defined]  # the model inside is counted
    return model
