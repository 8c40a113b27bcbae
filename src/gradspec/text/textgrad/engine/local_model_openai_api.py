"""Engines behind a client of the package `openai`."""

from __future__ import annotations

from typing import Any

from gradspec.text.textgrad.engine.openai import ChatOpenAI


class ChatExternalClient(ChatOpenAI):
    """A model at the address that a client of the package `openai` has, with its key.

    Args:
        client: An `openai.OpenAI`; only its `base_url` and `api_key` are read.
        model_string: The server's name of the model.
        system_prompt: What it is told where a call has no system prompt.
        **settings: As for `ChatOpenAI`.

    Example:
        >>> from types import SimpleNamespace
        >>> client = SimpleNamespace(base_url="http://localhost:1234/v1/", api_key="lm-studio")
        >>> ChatExternalClient(client, "qwen3-0.6b").model_string
        'qwen3-0.6b'
    """

    def __init__(self, client: Any, model_string: str, system_prompt: str = "", **settings: Any) -> None:
        url, key = str(client.base_url), client.api_key or None
        super().__init__(model_string, system_prompt, base_url=url, api_key=key, **settings)
