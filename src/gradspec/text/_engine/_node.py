"""The nodes of the graph that a backward pass walks, and the edges between them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias

from gradspec.text._engine._hooks import HookHandle, Hooks

if TYPE_CHECKING:
    from gradspec.text._graph._variable import Variable

#: An edge as the engine walks it: the node that the gradient goes to, or None, and which of its outputs it is for.
Edge: TypeAlias = "tuple[Node | None, int]"
#: A gradient that a pass begins with, and where it goes.
Seed: TypeAlias = "tuple[tuple[Node, int], Variable]"

_RANKS = count(0, -1)
#: The nodes that one of several programs makes that run side by side; None where there is one.
MADE: ContextVar[list[Node] | None] = ContextVar("gradspec.text.made", default=None)


class GradientEdge(NamedTuple):
    """Where a gradient goes: to which node, and for which of its outputs."""

    #: None where no gradient is wanted.
    node: Node | None
    #: The place of the output among all that forward returned.
    output_nr: int


class Node:
    """A step of the backward pass. The node of a Function's call is the `ctx` that its forward and backward get."""

    # A node lives with the defaults below until somebody asks for more: most nodes have no hook at all.
    #: The hooks of the Variables that the node gave, by output.
    _variable_hooks: dict[int, Hooks] | None = None
    #: The Variables that keep their gradient although they are not leaves, by output; weak, or node and output would
    #: keep each other alive.
    _retained: dict[int, weakref.ref[Variable]] | None = None
    _prehooks: Hooks | None = None
    _posthooks: Hooks | None = None
    #: Where the gradients go that `backward` returns: an edge for each Variable in the arguments.
    _edges: tuple[Edge, ...] = ()

    def name(self) -> str:
        """Return the name of the Function with `Backward` behind it."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[GradientEdge, ...]:
        """An edge for each Variable in the arguments; its node is None where no gradient is wanted."""
        return tuple(GradientEdge(*edge) for edge in self._edges)

    def register_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call `hook(grad_inputs, grad_outputs)` after `backward`; it may return other `grad_inputs`.

        Both are tuples, the first with a place for each of `next_functions`.
        """
        if self._posthooks is None:
            self._posthooks = {}
        return HookHandle(self._posthooks, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call `hook(grad_outputs)` before `backward`; it may return other ones."""
        if self._prehooks is None:
            self._prehooks = {}
        return HookHandle(self._prehooks, hook)

    def _hook_output(self, output_nr: int, hook: Callable[..., Any]) -> HookHandle:
        if self._variable_hooks is None:
            self._variable_hooks = {}
        return HookHandle(self._variable_hooks.setdefault(output_nr, {}), hook)

    def _output_changed(self, output_nr: int) -> None:
        """Hear that the data of an output was assigned."""


class Backward(Protocol):
    """The interface of a Function that the engine calls."""

    #: Whether `backward` waits for something, so that it is worth a thread of its own.
    io_bound: ClassVar[bool]
    _is_async: ClassVar[bool]

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return what is said of the arguments, from what is said of the outputs."""


class CallNode(Node):
    """The node of a call: what a pass asks of it, whose `backward` it runs."""

    _function: ClassVar[type[Backward]]
    #: Less than that of every node before it.
    _rank: int
    _outputs = 1
    #: Its name, and the roles of its outputs.
    _origin: tuple[str, tuple[str, ...]] = ("", ())

    def _check(self) -> None:
        """Raise now what backward would meet when it reads what was saved: before any call is paid for."""
        raise NotImplementedError

    def _before(self, gradients: list[Variable | None]) -> tuple[Variable | None, ...]:
        """Return the gradients of the outputs as the hooks left them."""
        raise NotImplementedError

    def _filled(self, given: tuple[Variable | None, ...]) -> tuple[Variable | None, ...]:
        """Return them as `backward` gets them."""
        raise NotImplementedError

    def _after(self, returned: Any, given: Sequence[Variable | None]) -> Sequence[Variable | None]:
        """Return what `backward` returned as one gradient, or None, for each edge."""
        raise NotImplementedError

    def _free(self) -> None:
        """Let go of what forward saved."""
        raise NotImplementedError


class AccumulateGrad(Node):
    """The node of a leaf: the gradient that arrives here is added to the leaf's `.grad`."""

    def __init__(self, variable: Variable) -> None:
        self.variable = variable

    def name(self) -> str:
        """Return `AccumulateGrad`."""
        return "AccumulateGrad"


def accumulator(leaf: Variable) -> AccumulateGrad:
    """Return the one node of a leaf, made when first needed; it lives as long as a graph needs it."""
    found = leaf._accumulator() if leaf._accumulator is not None else None
    if found is None:
        found = AccumulateGrad(leaf)
        found._variable_hooks = {0: leaf._hooks} if leaf._hooks is not None else None
        leaf._accumulator = weakref.ref(found)
    return found


def next_rank() -> int:
    """Return a number less than that of every node so far: of the nodes that are ready, the latest call runs first."""
    return next(_RANKS)
