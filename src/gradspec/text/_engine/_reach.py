"""Which nodes a gradient could reach, and which of them must run for the gradients that are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from contextvars import ContextVar
from typing import Protocol

from gradspec.text._engine._node import CallNode, Edge, Node


class Wanted(Protocol):
    """A backward pass for the gradients of some Variables only."""

    def wants(self, edge: Edge) -> bool:
        """Return whether this pass needs the gradient that goes along an edge."""


#: The pass that is running, if it does not want every gradient. The node itself is not touched, so that two passes
#: over one graph may run at once.
NARROWED: ContextVar[Wanted | None] = ContextVar("gradspec.text.narrowed", default=None)


def uses(roots: Sequence[Edge]) -> dict[Node, int]:
    """Return each node that a gradient could reach, with the number of edges that lead there."""
    uses: dict[Node, int] = {}
    edges = [tuple(roots)]
    while edges:
        for node, _ in edges.pop():
            if node in uses:
                uses[node] += 1
            elif node is not None:
                uses[node] = 1
                edges.append(node._edges)
    return uses


def reachable(nodes: Iterable[Node]) -> list[Node]:
    """Return the nodes that a gradient of some nodes could reach, these included."""
    return [*uses([(node, 0) for node in nodes])]


def leading_to(wanted: Set[Edge], nodes: Iterable[Node]) -> set[Node]:
    """Return the nodes whose backward must run to reach a wanted edge; a node comes after all that it leads to."""
    runs: set[Node] = set()
    for node in sorted((n for n in nodes if isinstance(n, CallNode)), key=lambda n: -n._rank):
        if any(edge in wanted or edge[0] in runs for edge in node._edges):
            runs.add(node)
    return runs
