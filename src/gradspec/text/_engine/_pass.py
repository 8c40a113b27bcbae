"""The backward pass: each node once, when all its gradients are there, the latest call first.

`run` is the whole of it; `_concurrent.run` is the same with several nodes at work. Nothing outside the pass changes
before `commit`. What a gradient is, and how several become one, is said by the `Merging` that it is given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import repeat
from operator import attrgetter, itemgetter
from threading import RLock
from typing import TYPE_CHECKING

from gradspec.text._costs import BACKWARD
from gradspec.text._engine._deferred import resolve_in_order
from gradspec.text._engine._merging import Merging
from gradspec.text._engine._node import AccumulateGrad, CallNode, Edge, Node, Seed
from gradspec.text._engine._reach import NARROWED, leading_to, uses
from gradspec.text._events import BackwardStep, Committed, emit, watched
from gradspec.text._grad_mode import ENABLED
from gradspec.text._scheduling._position import PLACE, Place

if TYPE_CHECKING:
    from gradspec.text._graph._variable import Variable

#: The rank of what a pass begins with: it comes before what any node sends.
FIRST = float("-inf")
#: Passes in several threads may end at one leaf, and each adds to what it finds; a hook may begin another pass.
COMMITTING = RLock()


def run(current: Pass) -> None:
    """Run the nodes of a pass, one after the other."""
    with current.running():
        for node, given in current.ready_nodes():
            returned = node._function.backward(node, *node._filled(given))
            if current.places is not None:
                returned = resolve_in_order(returned)
            current.deliver(node, node._after(returned, given))


class Pass:
    """The state of one backward pass: which gradients have arrived where, and which nodes are ready.

    Args:
        seeds: The gradients that the pass begins with, and where they go.
        merging: What a gradient is.
        wanted: The edges whose gradients are asked for, and are `captured`; None accumulates into every leaf.
    """

    def __init__(self, seeds: Sequence[Seed], merging: Merging, wanted: Set[Edge] | None = None) -> None:
        self._wanted, self._merging = wanted, merging
        #: The gradients of the wanted edges, as far as any arrived.
        self.captured: dict[Edge, Variable] = {}
        self._grads: list[tuple[Variable, Variable]] = []
        self._ready: list[tuple[int, CallNode]] = []
        # For each node, with each gradient: the rank of the node that sent it, and the output that it is for.
        self._arrived: dict[Node, list[tuple[float, int, Variable]]] = {}
        self._seeds = seeds
        # For each node, how many gradients are still to come.
        self._waiting = uses([edge for edge, _ in seeds])
        self._runs: Set[Node] = self._waiting.keys()
        self._reached: set[Edge] = set()
        if wanted is not None:
            self._runs = leading_to(wanted, self._waiting)
            self._narrow(wanted)
        self._watched = watched()
        #: Where the calls of each node are made, if somebody asks for that.
        self.places: dict[Node, Place] | None = None
        #: Whether a backward among them has to be awaited.
        self.is_async = False
        for node in self._runs:
            if isinstance(node, CallNode):
                node._check()  # before the first call is made and paid for
                if node._function._is_async:
                    self.is_async = True

    def wants(self, edge: Edge) -> bool:
        """Return whether the gradient that goes along an edge is of use to this pass."""
        return edge[0] in self._runs or (self._wanted is not None and edge in self._wanted)

    def reaches(self, edge: Edge) -> bool:
        """Return whether any path leads from the seeds to an edge."""
        return edge in self._reached

    def ready_nodes(self) -> Iterator[tuple[CallNode, tuple[Variable | None, ...]]]:
        """Yield each node that is ready, the latest call first, with the gradients of its outputs behind its hooks."""
        seeds, self._seeds = self._seeds, ()
        self._send([edge for edge, _ in seeds], [gradient for _, gradient in seeds], FIRST)
        while self._ready:
            _, node = heappop(self._ready)
            arrived = self._arrived.pop(node, None)
            if arrived is None:
                self._send(
                    node._edges, repeat(None), node._rank
                )  # nothing was said of it, so nothing below it is asked
                continue
            if node in self._runs:
                self.enter(node)
            gradients = self._merged(node, arrived, node._outputs)
            if node in self._runs:
                yield node, node._before(gradients)

    def enter(self, node: CallNode) -> None:
        """Have what is asked from here on counted on a node, and made at its place."""
        BACKWARD.set(node)
        if self.places is not None:
            PLACE.set(self.places[node])

    def deliver(self, node: CallNode, gradients: Iterable[Variable | None]) -> None:
        """Send what a node's backward returned along its edges."""
        if self._watched and node in self._runs:
            emit(BackwardStep(node=node.name(), roles=node._origin[1]))
        self._send(node._edges, gradients, node._rank)

    def commit(self, *, retain_graph: bool) -> None:
        """Write the gradients into `.grad`, and free what the nodes saved: all of it, or none if anything fails."""
        with COMMITTING:
            before = [(variable, variable._grad) for variable, _ in self._grads]
            try:
                for variable, gradient in self._grads:
                    variable._grad = self._merging.added(variable._grad, gradient)
                for variable, _ in self._grads:
                    for hook in tuple((variable._grad_hooks or {}).values()):
                        hook(variable)
            except BaseException:
                for variable, grad in before:
                    variable._grad = grad
                raise
        if self._watched:
            emit(Committed(gradients=len(self._grads)))
        if not retain_graph:
            for node in self._runs:
                if isinstance(node, CallNode):
                    node._free()

    def accumulate(self, variable: Variable, gradient: Variable) -> None:
        """Have a gradient added to a Variable's `.grad` when the pass is committed."""
        self._grads.append((variable, gradient))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Turn grad mode off, and let `needs_input_grad` say what this pass needs."""
        narrowed = NARROWED.set(None if self._wanted is None else self)
        enabled, outer, place = ENABLED.set(False), BACKWARD.get(), PLACE.get()
        if place is not None:
            position = place.next()
            nodes = sorted((node for node in self._runs if isinstance(node, CallNode)), key=attrgetter("_rank"))
            self.places = {node: Place((*position, number)) for number, node in enumerate(nodes)}
        try:
            yield
        finally:
            PLACE.set(place)
            BACKWARD.set(outer)
            ENABLED.reset(enabled)
            NARROWED.reset(narrowed)

    def _narrow(self, wanted: Set[Edge]) -> None:
        """Wait only for what leads to a wanted edge."""
        edges = [edge for edge, _ in self._seeds] + [edge for node in self._runs for edge in node._edges]
        edges = [edge for edge in edges if self.wants(edge)]
        self._reached = {edge for edge in edges if edge in wanted}
        self._waiting = Counter([target for target, _ in edges if target is not None])

    def _send(self, edges: Sequence[Edge], gradients: Iterable[Variable | None], rank: float) -> None:
        waiting, arrived, narrowed = self._waiting, self._arrived, self._wanted is not None
        for edge, gradient in zip(edges, gradients, strict=False):
            node, output_nr = edge
            if node is None or (narrowed and not self.wants(edge)):
                continue
            if gradient is not None:
                if node in arrived:
                    arrived[node].append((rank, output_nr, gradient))
                else:
                    arrived[node] = [(rank, output_nr, gradient)]
            waiting[node] -= 1
            if waiting[node]:
                continue
            if isinstance(node, CallNode):
                heappush(self._ready, (node._rank, node))
            elif isinstance(node, AccumulateGrad) and node in arrived:
                (total,) = self._merged(node, arrived.pop(node), 1)
                # The leaf may have been told since that it needs no gradient.
                if total is not None and self._wanted is None and node.variable._requires_grad:
                    self.accumulate(node.variable, total)

    def _merged(self, node: Node, arrived: list[tuple[float, int, Variable]], outputs: int) -> list[Variable | None]:
        """Merge what arrived at a node, in an order that does not depend on who finished first."""
        if len(arrived) == outputs == 1:
            gradients: list[Variable | None] = [arrived[0][2]]
        else:
            arrived.sort(key=itemgetter(0))
            places: list[list[Variable]] = [[] for _ in range(outputs)]
            for _, output_nr, gradient in arrived:
                places[output_nr].append(gradient)
            gradients = [self._merging.merge(found) if found else None for found in places]
        if node._variable_hooks or node._retained or self._wanted is not None:
            self._show(node, gradients)
        return gradients

    def _show(self, node: Node, gradients: list[Variable | None]) -> None:
        """Let the hooks of the node's Variables replace their gradients, and keep what somebody asked for."""
        for place, hooks in (node._variable_hooks or {}).items():
            gradients[place] = self._merging.hooked(hooks, gradients[place])
        for place, retained in (node._retained or {}).items():
            variable, kept = retained(), gradients[place]
            if variable is not None and kept is not None:
                self.accumulate(variable, kept)
        if self._wanted is not None:
            for place, wanted in enumerate(gradients):
                if wanted is not None and (node, place) in self._wanted:
                    self.captured[node, place] = wanted
