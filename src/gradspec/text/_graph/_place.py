"""The place of a Variable in the graph: the call that made it, and what is asked of its gradient there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast
from weakref import ref

from gradspec.text._engine._hooks import HookHandle, Hooks
from gradspec.text._graph._value import Value

if TYPE_CHECKING:
    from gradspec.text._engine._node import AccumulateGrad, Node
    from gradspec.text._graph._variable import Variable


class Placed(Value):
    """A leaf, on which hooks are kept, or an output of a call, whose hooks are with the node of the call."""

    _requires_grad: bool
    _grad_fn: Node | None = None
    _output_nr = 0
    _retains_grad = False
    #: The node of a leaf; weak, for the node holds the leaf.
    _accumulator: ref[AccumulateGrad] | None = None
    #: The hooks of a leaf; those of another Variable are with its node.
    _hooks: Hooks | None = None
    _grad_hooks: Hooks | None = None

    @property
    def requires_grad(self) -> bool:
        """Whether a gradient is wanted; only a leaf's can be assigned."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if self._grad_fn is not None:
            hint = (
                ""
                if value
                else " If you want to use a computed variable in a subgraph that doesn't require differentiation use "
                "var_no_grad = var.detach()."
            )
            raise RuntimeError(f"you can only change requires_grad flags of leaf variables.{hint}")
        self._requires_grad = bool(value)

    @property
    def grad_fn(self) -> Node | None:
        """The node of the call that made it; None for a leaf."""
        return self._grad_fn

    @property
    def output_nr(self) -> int:
        """Its place among all that the call returned; 0 for a leaf."""
        return self._output_nr

    @property
    def is_leaf(self) -> bool:
        """Whether no tracked call made it."""
        return self._grad_fn is None

    @property
    def retains_grad(self) -> bool:
        """Whether it keeps its gradient although it is not a leaf."""
        return self._retains_grad

    def retain_grad(self) -> None:
        """Let `backward` fill `grad` although this is not a leaf; on a leaf it changes nothing."""
        if not self._requires_grad:
            raise RuntimeError("can't retain_grad on Variable that has requires_grad=False")
        if self._grad_fn is not None and not self._retains_grad:
            if self._grad_fn._retained is None:
                self._grad_fn._retained = {}
            self._grad_fn._retained[self._output_nr] = ref(cast("Variable", self))
            self._retains_grad = True

    def register_hook(self, hook: Callable[[Variable], Variable | None]) -> HookHandle:
        """Call `hook(gradient)` when the gradient of this Variable is complete; it may return another one.

        It is not called where no gradient arrives.
        """
        if not self._requires_grad:
            raise RuntimeError("cannot register a hook on a variable that doesn't require gradient")
        if self._grad_fn is not None:
            return self._grad_fn._hook_output(self._output_nr, hook)
        if self._hooks is None:
            self._hooks = {}
            node = self._accumulator() if self._accumulator is not None else None
            if node is not None:
                node._variable_hooks = {0: self._hooks}
        return HookHandle(self._hooks, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Variable], None]) -> HookHandle:
        """Call `hook(variable)` once a backward pass has filled the `.grad` of this leaf."""
        if not self._requires_grad:
            raise RuntimeError("cannot register a hook on a variable that doesn't require gradient")
        if self._grad_fn is not None:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf variables")
        if self._grad_hooks is None:
            self._grad_hooks = {}
        return HookHandle(self._grad_hooks, hook)

    def _assigned(self) -> None:
        if self._grad_fn is not None:
            self._grad_fn._output_changed(self._output_nr)
