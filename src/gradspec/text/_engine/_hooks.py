"""Hooks, in the order in which they were registered, and the handles that remove them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, TypeAlias

Hooks: TypeAlias = dict[int, Callable[..., Any]]
_KEYS = count()


class HookHandle:
    """The handle of a registered hook: `remove` takes the hook away again."""

    def __init__(self, hooks: Hooks, hook: Callable[..., Any]) -> None:
        self._hooks = hooks
        self._key = next(_KEYS)
        hooks[self._key] = hook

    def remove(self) -> None:
        """Take the hook away; to do so twice is not an error."""
        self._hooks.pop(self._key, None)


def replace_each(hooks: Hooks, values: tuple[Any, ...], *others: Any) -> tuple[Any, ...]:
    """Let each hook of a node replace a tuple of gradients by another of the same length.

    Raises:
        TypeError: a hook returned neither None nor a tuple.
        RuntimeError: a hook returned a tuple of another length.
    """
    for hook in tuple(hooks.values()):
        replaced = hook(values, *others)
        if replaced is None:
            continue
        if not isinstance(replaced, tuple):
            raise TypeError(f"expected tuple, but hook returned '{type(replaced).__name__}'")
        if len(replaced) != len(values):
            raise RuntimeError(
                f"hook '{_name(hook)}' has returned an incorrect number of values "
                f"(got {len(replaced)}, but expected {len(values)})"
            )
        values = replaced
    return values


def _name(hook: Callable[..., Any]) -> str:
    return getattr(hook, "__name__", type(hook).__name__)
