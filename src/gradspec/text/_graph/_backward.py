"""`backward`: gradients that are accumulated in the leaves."""

from __future__ import annotations

from collections.abc import Sequence

from gradspec.text._engine import _concurrent
from gradspec.text._engine._pass import Pass
from gradspec.text._engine._reach import reachable
from gradspec.text._graph._context import FunctionNode
from gradspec.text._graph._seeds import Gradients, Variables, begin, listed, place_of, targets_of
from gradspec.text._graph._variable import Variable
from gradspec.text._scheduling._overlap import checked_limit


def backward(
    variables: Variables,
    grad_variables: Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Variables | None = None,
    *,
    max_concurrency: int | None = None,
) -> None:
    """Accumulate gradients in the leaves of the graph that the variables depend on.

    All or nothing: after an exception, a cancelled task or Ctrl-C, every `.grad` and the graph are as they were.

    Args:
        variables: What to begin with.
        grad_variables: A gradient for each of them: feedback, in words or numbers. None is the number 1 for a number,
            and an empty text for a text; a list needs a gradient of its own.
        retain_graph: Whether to keep what the graph saved, for another backward pass.
        create_graph: Not implemented.
        inputs: The Variables to accumulate in; None is every leaf. Only calls that lead to them are run, and
            `needs_input_grad` is narrowed to them.
        max_concurrency: How many calls of Functions that are I/O-bound or async may be in flight at once; None is
            what `concurrency` says, and else 1. The result is the same for any number.

    Raises:
        RuntimeError: a variable does not require grad, the graph was freed, or a saved Variable was changed.
        NotImplementedError: `create_graph` is true.

    Example:
        >>> from gradspec.text import Variable, backward
        >>> x = Variable(2.0, requires_grad=True)
        >>> backward([x + 1, x + 2])
        >>> x.grad.data
        2
    """
    targets = targets_of(inputs)
    current = begin(variables, grad_variables, create_graph, targets)
    _concurrent.run_up_to(checked_limit(max_concurrency), current)
    _commit(current, targets, retain_graph)


async def backward_async(
    variables: Variables,
    grad_variables: Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Variables | None = None,
    *,
    max_concurrency: int | None = None,
) -> None:
    """Do what `backward` does, on the event loop that runs: async backwards are awaited here, others use threads.

    Args:
        variables: As for `backward`, and so are the others.
        grad_variables: A gradient for each of them.
        retain_graph: Whether to keep what the graph saved.
        create_graph: Not implemented.
        inputs: The Variables to accumulate in.
        max_concurrency: How many calls may be in flight at once.

    Example:
        >>> import asyncio
        >>> from gradspec.text import Function, Variable, backward_async
        >>> class Echo(Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return Variable(x.data)
        ...     @staticmethod
        ...     async def backward(ctx, grad_out):
        ...         await asyncio.sleep(0)
        ...         return grad_out
        >>> x = Variable("a", requires_grad=True)
        >>> asyncio.run(backward_async(Echo.apply(x), Variable("b")))
        >>> x.grad.data
        'b'
    """
    targets = targets_of(inputs)
    variables = listed(variables, "variables")
    await _arrived(variables)
    current = begin(variables, grad_variables, create_graph, targets)
    await _concurrent.run(current, checked_limit(max_concurrency))
    _commit(current, targets, retain_graph)


async def _arrived(variables: Sequence[Variable]) -> None:
    """Await what the forward of the graph has not computed yet, before a pass would wait for it."""
    for node in {node for variable in variables if variable._grad_fn for node in reachable([variable._grad_fn])}:
        if isinstance(node, FunctionNode) and node._pending is not None:
            await node._pending.aresult()


def _commit(current: Pass, targets: Sequence[Variable] | None, retain_graph: bool | None) -> None:
    for variable in dict.fromkeys(targets or ()):
        gradient = current.captured.get(place_of(variable))
        if gradient is not None and not variable._retains_grad:
            current.accumulate(variable, gradient)
    current.commit(retain_graph=bool(retain_graph))
    for variable in targets or ():
        variable.retain_grad()
