"""Whether calls are tracked: `no_grad`, `enable_grad` and `set_grad_enabled`, for each thread and task."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import Any, TypeVar, cast, overload

F = TypeVar("F", bound=Callable[..., Any])

# A context variable and not a thread's: tasks of one event loop share a thread.
ENABLED: ContextVar[bool] = ContextVar("gradspec.text.grad_enabled", default=True)


def is_grad_enabled() -> bool:
    """Return whether the results of `Function.apply` are tracked here.

    Example:
        >>> with no_grad():
        ...     is_grad_enabled()
        False
    """
    return ENABLED.get()


class _GradMode:
    """A grad mode for the length of a `with` block, or of a call of what it decorates."""

    def __init__(self, mode: bool) -> None:
        self._mode = mode
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(ENABLED.get())
        ENABLED.set(self._mode)

    def __exit__(self, *exception: object) -> None:
        ENABLED.set(self._before.pop())

    def __call__(self, function: F) -> F:
        """Return `function`, run in this grad mode."""
        return _in_mode(self._mode, function)


class set_grad_enabled(_GradMode):  # noqa: N801 -- torch's name
    """Track calls or do not, from here on, in a `with` block, or in what it decorates.

    Args:
        mode: Whether calls are tracked.

    Example:
        >>> from gradspec.text import Variable
        >>> prompt = Variable("Answer.", requires_grad=True)
        >>> with set_grad_enabled(False):
        ...     (prompt + "!").requires_grad
        False
        >>> (prompt + "!").requires_grad
        True
    """

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"mode is True or False, not {mode!r}")
        super().__init__(mode)
        self._outer = ENABLED.get()
        ENABLED.set(mode)

    def __enter__(self) -> None:
        # The call has set the mode already; what the block goes back to is what was there before it.
        self._before.append(self._outer)
        ENABLED.set(self._mode)

    def __call__(self, function: F) -> F:
        """Return `function`, run in this grad mode; the mode here is what it was."""
        ENABLED.set(self._outer)
        return super().__call__(function)


class no_grad(_GradMode):  # noqa: N801 -- torch's name
    """Do not track calls, in a `with` block or in a decorated function; `@no_grad` and `@no_grad()` are the same.

    Example:
        >>> from gradspec.text import Variable
        >>> @no_grad
        ... def shout(prompt):
        ...     return prompt + "!"
        >>> shout(Variable("Answer.", requires_grad=True)).grad_fn is None
        True
    """

    @overload
    def __new__(cls, function: F) -> F: ...  # type: ignore[misc]  # the decorator without parentheses
    @overload
    def __new__(cls) -> no_grad: ...
    def __new__(cls, function: Any = None) -> Any:
        """Decorate `function` at once where it is given."""
        return super().__new__(cls) if function is None else _in_mode(False, function)

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(_GradMode):  # noqa: N801 -- torch's name
    """Track calls, inside a `no_grad` too, in a `with` block or in a decorated function.

    Example:
        >>> with no_grad(), enable_grad():
        ...     is_grad_enabled()
        True
    """

    @overload
    def __new__(cls, function: F) -> F: ...  # type: ignore[misc]  # the decorator without parentheses
    @overload
    def __new__(cls) -> enable_grad: ...
    def __new__(cls, function: Any = None) -> Any:
        """Decorate `function` at once where it is given."""
        return super().__new__(cls) if function is None else _in_mode(True, function)

    def __init__(self) -> None:
        super().__init__(True)


def _in_mode(mode: bool, function: F) -> F:
    return cast("F", _wrapped(mode, function))


def _wrapped(mode: bool, function: Any) -> Any:
    if inspect.isgeneratorfunction(function):
        return _generator_in_mode(mode, function)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            with _GradMode(mode):
                return await function(*args, **kwargs)

        return coroutine

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _GradMode(mode):
            return function(*args, **kwargs)

    return call


def _generator_in_mode(mode: bool, function: Any) -> Any:
    @functools.wraps(function)
    def generate(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        generator = function(*args, **kwargs)
        step, value = generator.send, None
        while True:
            try:
                with _GradMode(mode):  # only while it runs: what is between two values is the caller's
                    item = step(value)
            except StopIteration as end:
                return end.value
            try:
                step, value = generator.send, (yield item)
            except GeneratorExit:
                with _GradMode(mode):
                    generator.close()
                raise
            except BaseException as error:
                step, value = generator.throw, error

    return generate
