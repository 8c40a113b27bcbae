"""Convert the results of backward to a gradient for each Variable in the arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradspec.text._data import fits, in_words
from gradspec.text._engine._deferred import resolve
from gradspec.text._graph._arguments import Nested, count_of
from gradspec.text._graph._merge import kind_of
from gradspec.text._graph._variable import Variable

if TYPE_CHECKING:
    from gradspec.text._graph._context import FunctionNode


def gradients_of(node: FunctionNode, values: tuple[Any, ...]) -> list[Variable | None]:
    """Return what `backward` returned for the arguments as one gradient, or None, for each edge."""
    gradients: list[Variable | None] = []
    if len(values) != len(node._slots):
        values = _counted(node, values)
    for place, (slot, value) in enumerate(zip(node._slots, values, strict=False)):
        if slot == 1:
            gradients.append(stamped(value, node))
        elif slot is not None:
            _structured(node, slot, value, place, gradients)
        elif value is not None:
            raise RuntimeError(
                f"function {node.name()} returned a gradient different than None at position {place}, but the "
                "corresponding forward input was not a Variable"
            )
    if len(gradients) < len(node._edges):
        gradients += [None] * (len(node._edges) - len(gradients))
    check_kinds(node, gradients)
    return gradients


def check_kinds(node: FunctionNode, gradients: Sequence[Variable | None]) -> None:
    """Refuse a gradient that cannot be of its Variable."""
    for edge, gradient in enumerate(gradients):
        if gradient is None or type(gradient._data) is str:
            continue
        got, of = kind_of(gradient), (str, None) if node._kinds is None else node._kinds[edge]
        if not fits(got, of):
            raise RuntimeError(
                f"function {node.name()} returned an invalid gradient for {_argument_of(node, edge)}: "
                f"got {in_words(got)}, but the argument holds {in_words(of)}"
            )


def _argument_of(node: FunctionNode, edge: int) -> str:
    """Return the name of the argument that an edge is of, or its position if it has no name of its own."""
    before = 0
    for place, slot in enumerate(node._slots):
        before += count_of(slot)
        if edge < before:
            parameters = [*type(node)._function._call.signature.parameters.values()][: place + 1]
            named = len(parameters) == place + 1 and not any(
                p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters
            )
            return f"`{parameters[-1].name}`" if named else f"argument {place}"
    return f"Variable {edge}"


def _counted(node: FunctionNode, values: tuple[Any, ...]) -> tuple[Any, ...]:
    expected, got = len(node._slots), len(values)
    if got > expected and all(value is None for value in values[expected:]):
        values = values[:expected]
    elif not node._least <= got <= expected:
        raise RuntimeError(
            f"function {node.name()} returned an incorrect number of gradients (expected {expected}, got {got})"
        )
    return values


def stamped(returned: Any, node: FunctionNode) -> Variable | None:
    """Return a gradient that backward returned for one Variable, with where it came from."""
    gradient = returned if isinstance(returned, Variable) else resolve(returned)
    if gradient is None:
        return None
    if not isinstance(gradient, Variable):
        raise RuntimeError(f"expected Variable or None (got {type(gradient).__name__})")
    if gradient._requires_grad:
        gradient = gradient.detach()  # an argument returned as a gradient would be kept by its own grad
    if gradient._origin is None:
        gradient._origin = node._origin
    return gradient


def _structured(
    node: FunctionNode, slot: int | Nested, value: Any, place: int, gradients: list[Variable | None]
) -> None:
    value = resolve(value)
    if isinstance(slot, int) or value is None:
        gradients += [None] * count_of(slot) if value is None else [stamped(value, node)]
        return
    fits = isinstance(value, dict) if slot.is_dict else isinstance(value, list | tuple) and len(value) == slot.length
    if not fits:
        wanted = "a dict" if slot.is_dict else f"a list of {slot.length}"
        raise RuntimeError(
            f"function {node.name()} returned a {type(value).__name__} at position {place}, where the argument "
            f"holds Variables: return None or {wanted}, with a gradient or None in the place of each Variable"
        )
    for key, inner in slot.items.items():
        item = value.get(key) if slot.is_dict else value[key]
        _structured(node, inner, item, place, gradients)
