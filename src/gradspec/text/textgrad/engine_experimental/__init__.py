"""Engines by way of the package `litellm`."""

from gradspec.text.textgrad.engine_experimental.litellm import LiteLLMEngine

__all__ = ["LiteLLMEngine"]
