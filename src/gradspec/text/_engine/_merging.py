"""The operations on gradients that a backward pass needs: merge, add, hook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from gradspec.text._engine._hooks import Hooks

if TYPE_CHECKING:
    from gradspec.text._graph._variable import Variable


class Merging(Protocol):
    """How several gradients become one, and what the hooks of a Variable make of one."""

    def merge(self, gradients: Sequence[Variable]) -> Variable:
        """Return several gradients of one output as one, in their order."""

    def added(self, old: Variable | None, gradient: Variable) -> Variable:
        """Return what a `.grad` is once a gradient is added to it."""

    def hooked(self, hooks: Hooks, gradient: Variable | None) -> Variable | None:
        """Return a gradient as the hooks of its Variable leave it."""
