"""`grad`: gradients that are returned, and not accumulated."""

from __future__ import annotations

from gradspec.text._data import zero
from gradspec.text._engine import _concurrent
from gradspec.text._engine._node import GradientEdge
from gradspec.text._graph._seeds import Gradients, Variables, begin, listed, place_of
from gradspec.text._graph._variable import Variable
from gradspec.text._scheduling._overlap import checked_limit


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
    wanted = listed(inputs, "inputs")
    for variable in wanted:
        if not variable._requires_grad:
            raise RuntimeError("One of the differentiated Variables does not require grad")
    edges = [place_of(variable) for variable in wanted]
    current = begin(outputs, grad_outputs, create_graph, wanted)
    for place, edge in enumerate(edges):
        if not (allow_unused or materialize_grads or current.reaches(edge)):
            raise RuntimeError(
                f"The differentiated Variable at index {place} appears to not have been used in the graph. "
                "Set allow_unused=True if this is the desired behavior."
            )
    _concurrent.run_up_to(checked_limit(max_concurrency), current)
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
    if not isinstance(variable, Variable):
        raise TypeError(f"only a Variable has a gradient edge, not {variable!r}")
    if not variable._requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Variable that does not require gradients")
    return GradientEdge(*place_of(variable))
