"""Engines: who is asked."""

from typing import Any

from gradspec.text.textgrad._absent import absent
from gradspec.text.textgrad.engine._names import get_engine
from gradspec.text.textgrad.engine.base import Engine, EngineLM, ModelEngine, model_of
from gradspec.text.textgrad.engine.openai import ChatOpenAI

__all__ = ["ChatOpenAI", "Engine", "EngineLM", "ModelEngine", "get_engine", "model_of"]


def __getattr__(name: str) -> Any:
    raise absent(__name__, name)
