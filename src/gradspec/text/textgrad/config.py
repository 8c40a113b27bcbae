"""The engine that is asked on the way back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar

from gradspec.text.lm import Completion, Messages, complete
from gradspec.text.textgrad.engine import get_engine
from gradspec.text.textgrad.engine.base import Engine, model_of

_CURRENT: ContextVar[Engine | None] = ContextVar("gradspec.text.textgrad.engine", default=None)


class SingletonBackwardEngine:
    """The one engine of the process that is asked on the way back, where `backward` is given none."""

    _one: ClassVar[SingletonBackwardEngine | None] = None
    _engine: Engine | None

    def __new__(cls) -> SingletonBackwardEngine:
        """Return the only object of this class."""
        if cls._one is None:
            cls._one = super().__new__(cls)
            cls._one._engine = None
        return cls._one

    def set_engine(self, engine: Engine, override: bool = False) -> None:
        """Let an engine be asked.

        Args:
            engine: The engine.
            override: Whether it may take the place of another one.

        Raises:
            RuntimeError: there is one, and `override` is false.
        """
        if self._engine is not None and not override:
            raise RuntimeError("there is a backward engine; pass override=True to replace it")
        self._engine = engine

    def get_engine(self) -> Engine | None:
        """Return the engine; None if there is none."""
        return self._engine


def set_backward_engine(engine: Engine | str, override: bool = False, **options: Any) -> None:
    """Let an engine be asked on the way back, where `backward` is given none.

    Args:
        engine: An engine, or a name for `get_engine`.
        override: Whether it may take the place of another one.
        **options: For `get_engine`.

    Raises:
        RuntimeError: there is one, and `override` is false.

    Example:
        >>> from gradspec.text.textgrad import set_backward_engine
        >>> set_backward_engine(lambda messages: "Be brief.", override=True)
    """
    found = get_engine(engine, **options) if isinstance(engine, str) else engine
    SingletonBackwardEngine().set_engine(found, override)


def validate_engine_or_get_default(engine: Engine | str | None) -> Engine:
    """Return an engine: the one given, the one of that name, or the one of `set_backward_engine`.

    Raises:
        ValueError: none is given, and none is set.
    """
    found = get_engine(engine) if isinstance(engine, str) else engine or SingletonBackwardEngine().get_engine()
    if found is None:
        raise ValueError("there is no engine: pass engine=, or call set_backward_engine before")
    return found


@contextmanager
def backward_engine(engine: Engine) -> Iterator[None]:
    """Let an engine be asked in the backward passes of a block, in their threads too."""
    token = _CURRENT.set(engine)
    try:
        yield
    finally:
        _CURRENT.reset(token)


class Backward:
    """The model of every call on the way back: a call does not know yet which engine that will be."""

    #: Who answers counts, and tells of the call.
    counts = True

    def __call__(self, messages: Messages, **options: Any) -> Completion:
        """Ask the engine of this backward pass."""
        return complete(model_of(validate_engine_or_get_default(_CURRENT.get())), messages, **options)
