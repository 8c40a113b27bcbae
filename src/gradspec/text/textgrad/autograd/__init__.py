"""Calls that feedback goes back through."""

from typing import Any

from gradspec.text.textgrad._absent import absent
from gradspec.text.textgrad.autograd.function import Module
from gradspec.text.textgrad.autograd.functional import formatted_llm_call, llm_call, sum  # noqa: A004 -- TextGrad's
from gradspec.text.textgrad.autograd.llm_ops import FormattedLLMCall, LLMCall
from gradspec.text.textgrad.autograd.string_based_ops import StringBasedFunction

__all__ = ["FormattedLLMCall", "LLMCall", "Module", "StringBasedFunction", "formatted_llm_call", "llm_call", "sum"]


def __getattr__(name: str) -> Any:
    raise absent(__name__, name)
