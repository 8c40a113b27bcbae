"""Put the results of forward into the graph, and take them out of it."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from gradspec.text._data import holds_itself, zero
from gradspec.text._graph._arguments import Nested, variables_in
from gradspec.text._graph._saved import pack
from gradspec.text._graph._variable import Variable

if TYPE_CHECKING:
    from gradspec.text._graph._context import FunctionNode


def finish(node: FunctionNode, output: Any, inputs: list[Variable]) -> Any:
    """Return what forward returned, its Variables put into the graph, and keep what backward will need."""
    is_tuple = isinstance(output, tuple)
    outputs = output if is_tuple else (output,)
    if not node._edges:
        node._to_save = ()
        outputs = [_untracked(node, value, inputs) for value in outputs]
        return tuple(outputs) if is_tuple else outputs[0]
    outputs = [_output(node, value, place, inputs) for place, value in enumerate(outputs)]
    node._outputs = len(outputs)
    node._origin = (
        type(node).__name__,
        tuple([value.role for value in outputs if isinstance(value, Variable)]),
    )
    if node._to_save:
        try:
            node._saved, node._to_save = tuple([pack(value, node) for value in node._to_save]), ()
        except RecursionError:
            raise holds_itself(f"what {node._function.__name__} saved for backward") from None
    if node._materialize:
        node._zeros = tuple([zero(value.data) if isinstance(value, Variable) else None for value in outputs])
    return tuple(outputs) if is_tuple else outputs[0]


def _output(node: FunctionNode, value: Any, place: int, inputs: list[Variable]) -> Any:
    if not isinstance(value, Variable):
        if inspect.iscoroutine(value):
            raise _never_awaited(value, node)
        if isinstance(value, list | dict) and _held(value, node):
            raise TypeError(
                f"forward returned a {type(value).__name__} that holds Variables, which no gradient would reach; "
                "return them in a tuple"
            )
        return value
    in_a_graph = value._grad_fn is not node and (value._grad_fn is not None or value._accumulator is not None)
    if in_a_graph or any(value is variable for variable in inputs):
        return Variable._tracked(value.data, value.role, node, place)
    value._grad_fn, value._output_nr, value._requires_grad = node, place, True
    return value


def _held(value: Any, node: FunctionNode) -> Nested | None:
    try:
        return variables_in(value, [])
    except RecursionError:
        raise holds_itself(f"what {node._function.__name__} returned") from None


def _never_awaited(value: Any, node: FunctionNode) -> TypeError:
    value.close()  # else Python warns of it as well
    return TypeError(
        f"forward of {node._function.__name__} returned a coroutine, which nobody awaits: forward is a plain function; "
        "only backward may be async. To call an async model in it, use complete(model, messages)"
    )


def _untracked(node: FunctionNode, value: Any, inputs: list[Variable]) -> Any:
    if not isinstance(value, Variable):
        if inspect.iscoroutine(value):
            raise _never_awaited(value, node)
        return value
    if any(value is given for given in inputs):
        return value.detach()
    if value._requires_grad:
        if value._grad_fn is not None or value._accumulator is not None:
            return value.detach()
        value._requires_grad = False
    return value
