"""Every provider that the package `litellm` knows."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from gradspec.text.lm import Cache, Client, Completion, Message, Model, Usage
from gradspec.text.textgrad.engine.base import ModelEngine


@runtime_checkable
class Mapped(Protocol):
    """What keeps replies under keys: a dict, or a `diskcache.Cache`."""

    def get(self, key: str) -> Any:
        """Return what is kept, or None."""

    def __setitem__(self, key: str, value: str) -> None:
        """Keep something."""


class LiteLLMEngine(ModelEngine):
    """A model under LiteLLM's name; the package `litellm` is imported at the first call.

    Args:
        model_string: LiteLLM's name of the model.
        system_prompt: What it is told where a call has no system prompt.
        is_multimodal: Not supported: it is true by default in TextGrad, and here says nothing.
        cache: False for none; True for a file in the user's cache folder; a `gradspec.text.lm.Cache`, a dict, or a
            `diskcache.Cache`. A reply is kept under the whole request.
        **settings: For the `gradspec.text.lm.Client` around it: `budget`, `retry`, `rate`, `options`.

    Raises:
        ValueError: the cache is something else.

    Example:
        >>> LiteLLMEngine("claude-3-opus-20240229", cache={}).model_string
        'claude-3-opus-20240229'
    """

    def __init__(
        self,
        model_string: str,
        system_prompt: str = "",
        is_multimodal: bool = True,
        cache: bool | Cache | Mapped = False,
        **settings: Any,
    ) -> None:
        model = _model(model_string)
        kept: Cache | None = None
        if cache is True:
            kept = Cache(_folder() / "textgrad.sqlite3")
        elif isinstance(cache, Cache):
            kept = cache
        elif isinstance(cache, Mapped):
            model = _through(model, cache, model_string)
        elif cache is not False:
            raise ValueError(f"cache is True, False, a Cache, a dict or a diskcache.Cache, not {cache!r}")
        client = Client(model, name=f"litellm/{model_string}", cache=kept, **settings)
        super().__init__(client, model_string=model_string, system_prompt=system_prompt)


def _model(name: str) -> Model:
    def model(messages: tuple[Message, ...], **options: Any) -> Completion:
        try:
            litellm = import_module("litellm")
        except ImportError:
            raise ImportError(f"the engine 'experimental:{name}' needs the package litellm: install it") from None
        said = [{"role": message.role, "content": message.content} for message in messages]
        reply = litellm.completion(model=name, messages=said, **options)
        [choice], usage = reply.choices, getattr(reply, "usage", None)
        return Completion(
            text=choice.message.content or "",
            usage=usage and Usage(prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens),
            finish_reason=choice.finish_reason,
            model=getattr(reply, "model", None),
            id=getattr(reply, "id", None),
        )

    return model


def _through(model: Callable[..., Any], kept: Mapped, name: str) -> Model:
    from gradspec.text.lm._request import Request, key_of

    def cached(messages: tuple[Message, ...], **options: Any) -> Completion:
        key = key_of(Request(identity={"name": name}, messages=messages, options=options).canonical)
        text = kept.get(key)
        if isinstance(text, str):
            return Completion(text=text, cached=True)
        reply: Completion = model(messages, **options)
        kept[key] = reply.text
        return reply

    return cached


def _folder() -> Path:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gradspec"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
