"""How far a backward pass is, said on a terminal while it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO, TypeAlias

from gradspec.text._engine._node import Node
from gradspec.text._graph._context import FunctionNode
from gradspec.text._graph._variable import Variable

#: report(done, total, name of the Function that has just run)
Report: TypeAlias = Callable[[int, int, str], None]
CLEAR = "\r\x1b[K"


@contextmanager
def progress(*variables: Variable, report: Report | None = None) -> Iterator[None]:
    """Say how many calls of the graph a backward pass has run, inside a `with` block around that pass.

    A call that nothing is said of is never run, and so not counted; the total is then not reached.

    Args:
        *variables: What the pass begins with.
        report: Called after each call with how many are done, how many there are, and the name of the Function; None
            writes one line on stderr, and nothing where that is not a terminal.

    Example:
        >>> from gradspec.text import Variable, progress
        >>> x = Variable("a", requires_grad=True)
        >>> y = x + "b" + "c"
        >>> with progress(y, report=print):
        ...     y.backward(Variable("shorter"))
        1 2 Add
        2 2 Add
    """
    for variable in variables:
        if not isinstance(variable, Variable):
            raise TypeError(f"progress takes the Variables that a pass begins with, not {variable!r}")
    told = report if report is not None else _line(sys.stderr)
    nodes = _nodes(variables)
    done = 0

    def count(node: FunctionNode) -> Callable[[object, object], None]:
        def ran(grad_inputs: object, grad_outputs: object) -> None:
            nonlocal done
            done += 1
            told(done, len(nodes), node.name().removesuffix("Backward"))

        return ran

    handles = [node.register_hook(count(node)) for node in nodes]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
        if report is None and sys.stderr.isatty():
            sys.stderr.write(CLEAR)


def _line(stream: TextIO) -> Report:
    def told(done: int, total: int, name: str) -> None:
        if stream.isatty():
            stream.write(f"{CLEAR}backward {done}/{total} {name}")
            stream.flush()

    return told


def _nodes(variables: tuple[Variable, ...]) -> list[FunctionNode]:
    found: dict[Node, None] = {}
    stack = [variable._grad_fn for variable in variables]
    while stack:
        node = stack.pop()
        if node is not None and node not in found:
            found[node] = None
            stack += [target for target, _ in node._edges]
    return [node for node in found if isinstance(node, FunctionNode)]
