"""`backward` and `grad`: what is asked for, checked, and handed to the engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from gradspec.text._engine import _pass as _engine
from gradspec.text._engine._pass import Pass, reachable
from gradspec.text._graph._context import FunctionNode
from gradspec.text._graph._merge import zero
from gradspec.text._graph._node import GradientEdge, Node, accumulator
from gradspec.text._graph._variable import Variable, kind_of
from gradspec.text._scheduling._overlap import checked_limit

Variables = Variable | Iterable[Variable]
Gradients = Variable | None | Iterable[Variable | None]
T = TypeVar("T")

CREATE_GRAPH = (
    "create_graph=True is not implemented: feedback on feedback is not tracked. Call backward without it, and apply "
    "Functions to the gradients yourself."
)


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
    targets = _targets(inputs)
    current = _begin(variables, grad_variables, create_graph, targets)
    _run(current, max_concurrency)
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
    from gradspec.text._engine import _concurrent

    targets = _targets(inputs)
    variables = _listed(variables, "variables")
    await _arrived(variables)
    current = _begin(variables, grad_variables, create_graph, targets)
    await _concurrent.run(current, checked_limit(max_concurrency))
    _commit(current, targets, retain_graph)


def grad(
    outputs: Variables,
    inputs: Variables,
    grad_outputs: Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
    *,
    max_concurrency: int | None = None,
) -> tuple[Variable | None, ...]:
    """Return the gradients of outputs with respect to inputs, and do not touch the `.grad` of any leaf.

    Args:
        outputs: What to begin with.
        inputs: Whose gradients to return; only calls that lead to them are run.
        grad_outputs: A gradient for each output, as for `backward`.
        retain_graph: Whether to keep what the graph saved.
        create_graph: Not implemented.
        allow_unused: Whether an input may have nothing to do with the outputs; its gradient is None.
        materialize_grads: Whether such a gradient is an empty text (or 0) instead of None.
        max_concurrency: How many calls may be in flight at once.

    Returns:
        A gradient for each input; None where no gradient arrived.

    Raises:
        RuntimeError: as `backward`, or an input was not used.
        ValueError: `allow_unused=False` with `materialize_grads=True`.

    Example:
        >>> from gradspec.text import Variable, grad
        >>> x, y = Variable("a", requires_grad=True), Variable("b", requires_grad=True)
        >>> [gradient.data for gradient in grad(x + y, [x, y], Variable("longer"))]
        ['longer', 'longer']
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    wanted = _listed(inputs, "inputs")
    for variable in wanted:
        if not variable._requires_grad:
            raise RuntimeError("One of the differentiated Variables does not require grad")
    edges = [_edge(variable) for variable in wanted]
    current = _begin(outputs, grad_outputs, create_graph, wanted)
    for place, edge in enumerate(edges):
        if not (allow_unused or materialize_grads or current.reaches(edge)):
            raise RuntimeError(
                f"The differentiated Variable at index {place} appears to not have been used in the graph. "
                "Set allow_unused=True if this is the desired behavior."
            )
    _run(current, max_concurrency)
    current.commit(retain_graph=bool(retain_graph))
    found = (current.captured.get(edge) for edge in edges)
    if materialize_grads:
        return tuple(
            Variable(zero(variable.data)) if gradient is None else gradient
            for variable, gradient in zip(wanted, found, strict=True)
        )
    return tuple(found)


def get_gradient_edge(variable: Variable) -> GradientEdge:
    """Return where the gradient of a Variable goes: its node, or that of a leaf, and the number of the output.

    Raises:
        RuntimeError: it does not require grad.

    Example:
        >>> from gradspec.text import Variable, get_gradient_edge
        >>> get_gradient_edge(Variable("a", requires_grad=True)).node.name()
        'AccumulateGrad'
    """
    if not variable._requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Variable that does not require gradients")
    return GradientEdge(*_edge(variable))


def _begin(outputs: Variables, gradients: Gradients, create_graph: bool, targets: Sequence[Variable] | None) -> Pass:
    if create_graph:
        raise NotImplementedError(CREATE_GRAPH)
    roots = _listed(outputs, "variables")
    seeds = _seeds(roots, gradients)
    wanted = None if targets is None else {_edge(target) for target in targets}
    return Pass(seeds, wanted)


async def _arrived(variables: Sequence[Variable]) -> None:
    """Await what the forward of the graph has not computed yet, before a pass would wait for it."""
    for node in {node for variable in variables if variable._grad_fn for node in reachable([variable._grad_fn])}:
        if isinstance(node, FunctionNode) and node._pending is not None:
            await node._pending.aresult()


def _run(current: Pass, max_concurrency: int | None) -> None:
    limit = checked_limit(max_concurrency)
    if limit == 1 and not current.is_async:
        _engine.run(current)
        return
    from gradspec.text._engine import _concurrent

    _concurrent.run_sync(_concurrent.run(current, limit))


def _commit(current: Pass, targets: Sequence[Variable] | None, retain_graph: bool | None) -> None:
    for variable in dict.fromkeys(targets or ()):
        gradient = current.captured.get(_edge(variable))
        if gradient is not None and not variable._retains_grad:
            current.accumulate(variable, gradient)
    current.commit(retain_graph=bool(retain_graph))
    for variable in targets or ():
        variable.retain_grad()


def _targets(inputs: Variables | None) -> list[Variable] | None:
    if inputs is None:
        return None
    targets = _listed(inputs, "inputs")
    if not targets:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    for place, variable in enumerate(targets):
        if not variable._requires_grad:
            raise RuntimeError(f"element {place} of inputs does not require grad: {variable!r}")
    return targets


def _edge(variable: Variable) -> tuple[Node, int]:
    return (variable._grad_fn or accumulator(variable), variable._output_nr)


def _seeds(roots: list[Variable], gradients: Gradients) -> list[tuple[tuple[Node, int], Variable]]:
    if isinstance(gradients, str | int | float):
        raise TypeError(f"a gradient is a Variable, not {_quoted(gradients)}; write Variable({_quoted(gradients)})")
    given = (
        [gradients] * len(roots)
        if gradients is None
        else [gradients]
        if isinstance(gradients, Variable)
        else [*gradients]
    )
    if len(given) != len(roots):
        raise RuntimeError(f"got {len(roots)} variables and {len(given)} gradients")
    seeds = []
    for place, (root, gradient) in enumerate(zip(roots, given, strict=True)):
        if not root._requires_grad:
            raise RuntimeError(f"element {place} of variables does not require grad and does not have a grad_fn")
        if gradient is None:
            gradient = _implicit(root)
        elif not isinstance(gradient, Variable):
            raise TypeError(f"gradients can be either Variables or None, but got {type(gradient).__name__}")
        if gradient._origin is None:
            gradient._origin = ("", ())
        seeds.append((_edge(root), gradient))
    return seeds


def _quoted(value: str | float) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _implicit(root: Variable) -> Variable:
    element, length = kind_of(root)
    if length is not None:
        raise RuntimeError("grad can be implicitly created only for scalar outputs; give a gradient for the list")
    return Variable("" if element is str else 1, role="seed")


def _listed(variables: Variables, name: str) -> list[Variable]:
    listed = [variables] if isinstance(variables, Variable) else [*variables]
    for variable in listed:
        if not isinstance(variable, Variable):
            raise TypeError(f"{name} holds a {type(variable).__name__}; it takes Variables")
    return listed
