"""Engines by name."""

from __future__ import annotations

import os
import re
from typing import Any

from gradspec.text.textgrad.engine.base import EngineLM
from gradspec.text.textgrad.engine.openai import OLLAMA_BASE_URL, ChatOpenAI
from gradspec.text.textgrad.engine_experimental.litellm import LiteLLMEngine

EXPERIMENTAL = "experimental:"
#: OpenAI's own models.
OPENAI = re.compile(r"(gpt-|chatgpt-|o\d)")
#: What a name begins with, whether that belongs to the server's name of the model, the server that speaks OpenAI's
#: protocol, and the variable that holds its key.
SERVERS = {
    "claude-": (True, "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    "gemini-": (True, "https://generativelanguage.googleapis.com/v1beta/openai", "GOOGLE_API_KEY"),
    "command-": (True, "https://api.cohere.ai/compatibility/v1", "COHERE_API_KEY"),
    "groq-": (False, "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "together-": (False, "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "ollama-": (False, OLLAMA_BASE_URL, None),
    "vllm-": (False, "http://localhost:8000/v1", None),
}


def get_engine(engine_name: str, **options: Any) -> EngineLM:
    """Return the engine of a name.

    Args:
        engine_name: `gpt-...`, `o1...` and `chatgpt-...` are OpenAI's; `claude-...`, `gemini-...`, `command-...`,
            `groq-NAME`, `together-NAME`, `ollama-NAME` and `vllm-NAME` are at servers that speak its protocol;
            `experimental:NAME` is LiteLLM's name of a model.
        **options: For the class of the engine. A `cache` is only for `experimental:` names.

    Raises:
        ValueError: the name is not known, there is no key, or a cache is given where none is taken.

    Example:
        >>> get_engine("ollama-llama3.2").model_string
        'llama3.2'
    """
    if engine_name.startswith(EXPERIMENTAL):
        return LiteLLMEngine(engine_name.removeprefix(EXPERIMENTAL), **options)
    if "cache" in options:
        raise ValueError(
            f"get_engine takes a cache for names that begin with {EXPERIMENTAL!r}; for {engine_name!r} use "
            "ChatOpenAI(..., cache=gradspec.text.lm.Cache(path))"
        )
    if OPENAI.match(engine_name):
        return ChatOpenAI(engine_name, **options)
    for start, (belongs, base_url, variable) in SERVERS.items():
        if engine_name.startswith(start):
            key = None if variable is None else os.environ.get(variable)
            if variable is not None and not key:
                raise ValueError(f"{engine_name!r} needs a key: set {variable}")
            name = engine_name if belongs else engine_name.removeprefix(start)
            return ChatOpenAI(name, base_url=base_url, api_key=key, **options)
    known = ", ".join(["gpt-", "chatgpt-", "o1", *SERVERS, EXPERIMENTAL])
    raise ValueError(f"no engine is called {engine_name!r}; a name begins with one of {known}")
