"""Gradients of text: each is a Variable, and several are merged into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradspec.text._engine._hooks import Hooks
from gradspec.text._graph._merge import add, kind_of
from gradspec.text._graph._variable import Variable


class Feedback:
    """Gradients that are Variables."""

    def merge(self, gradients: Sequence[Variable]) -> Variable:
        """Return several gradients of one output as one, in their order."""
        return merge(gradients)

    def added(self, old: Variable | None, gradient: Variable) -> Variable:
        """Return what a `.grad` is once a gradient is added to it."""
        return merged([gradient]) if old is None else merge([old, gradient])

    def hooked(self, hooks: Hooks, gradient: Variable | None) -> Variable | None:
        """Return a gradient as the hooks of its Variable leave it.

        Raises:
            TypeError: a hook returned neither None nor a Variable.
        """
        if gradient is None:
            return None
        for hook in tuple(hooks.values()):
            replaced: Any = hook(gradient)
            if replaced is not None:
                if not isinstance(replaced, Variable):
                    raise TypeError(f"expected Variable, but hook returned '{type(replaced).__name__}'")
                gradient = replaced
        return gradient


def merge(gradients: Sequence[Variable]) -> Variable:
    """Return several gradients of one Variable as one, in their order.

    Numbers are added, each as often as it arrived. Texts are listed, the same Variable once however many paths
    brought it: were it written out for each path, k stacked diamonds would make 2^k copies.

    Raises:
        RuntimeError: some are texts and some numbers, or they are lists of different lengths.
    """
    first = gradients[0]
    if len(gradients) == 1:
        return first
    what = kind_of(first)
    for other in gradients:
        if kind_of(other) != what:
            raise RuntimeError(
                f"two gradients of one Variable cannot be merged: {first!r} and {other!r}; they must be both text or "
                "both numbers, single or in lists of one length"
            )
    if what[0] is str:
        gradients = list({id(gradient): gradient for gradient in gradients}.values())
        return merged(gradients) if len(gradients) > 1 else first
    total = merged(gradients)
    total._data = add(gradients)
    return total


def merged(gradients: Sequence[Variable]) -> Variable:
    """Return one gradient made of others, its text not yet written out."""
    variable = Variable.__new__(Variable)
    variable._data = gradients[0]._data if len(gradients) == 1 else None
    variable._kind = kind_of(gradients[0])
    variable._sources = tuple(gradients)
    variable._requires_grad = False
    roles = {gradient.role for gradient in gradients}
    variable.role = roles.pop() if len(roles) == 1 else "feedback"
    return variable
