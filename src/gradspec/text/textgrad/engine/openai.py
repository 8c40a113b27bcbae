"""Engines behind OpenAI's protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradspec.text.lm import Client, OpenAIModel
from gradspec.text.textgrad.engine.base import ModelEngine

OLLAMA_BASE_URL = "http://localhost:11434/v1"
#: What every call asks for, unless told.
OPTIONS = {"temperature": 0, "max_tokens": 2000, "top_p": 0.99}


class ChatOpenAI(ModelEngine):
    """A model at OpenAI, or at any server that speaks its protocol.

    Nothing is cached unless a cache is given. Calls that fail for a passing reason are repeated.

    Args:
        model_string: The server's name of the model.
        system_prompt: What it is told where a call has no system prompt.
        is_multimodal: Not supported.
        base_url: The address of the server; None for OpenAI.
        api_key: The key; None for that in `OPENAI_API_KEY`, which is sent only to OpenAI.
        timeout: Seconds that one call may take in all.
        options: What each call asks for; None for a temperature of 0, 2000 tokens and a `top_p` of 0.99.
        **settings: For the `gradspec.text.lm.Client` around it: `cache`, `budget`, `retry`, `rate`.

    Raises:
        ValueError: there is no key for OpenAI, or the model is to see images.

    Example:
        >>> ChatOpenAI("llama3.2", base_url="http://localhost:11434/v1").model_string
        'llama3.2'
    """

    def __init__(
        self,
        model_string: str = "gpt-3.5-turbo-0613",
        system_prompt: str = "",
        is_multimodal: bool = False,
        base_url: str | None = None,
        *,
        api_key: str | None = None,
        timeout: float = 60.0,
        options: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        if is_multimodal:
            raise ValueError("images are not supported; leave is_multimodal out")
        model = OpenAIModel(model_string, base_url=base_url, api_key=api_key, timeout=timeout)
        client = Client(model, options=OPTIONS if options is None else options, **settings)
        super().__init__(client, model_string=model_string, system_prompt=system_prompt)
