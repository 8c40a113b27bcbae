"""The autograd graph behind an output, node by node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from gradspec.laws.tensor.support._call import outputs


def nodes_behind(y: Any) -> Iterator[Any]:
    """Yield each node of the graph of an output, or of a tuple of outputs, once."""
    queue = [t.grad_fn for t in outputs(y) if isinstance(t, Tensor) and t.grad_fn is not None]
    seen: set[Any] = set()
    while queue:
        node = queue.pop()
        if node not in seen:
            seen.add(node)
            yield node
            queue += [parent for parent, _ in node.next_functions if parent is not None]


def classes_behind(y: Any) -> list[type]:
    """Return the Functions in the graph of an output."""
    classes = (getattr(node, "_forward_cls", None) for node in nodes_behind(y))
    return list(dict.fromkeys(cls for cls in classes if cls is not None))


def is_of_operator(cls: type) -> bool:
    """Whether torch.library made a Function, of an operator and its registered backward."""
    return cls.__module__ == "torch._library.autograd"


def of_operator(cls: type) -> str:
    """Return the name of the Function that torch.library makes of an operator, without the overload: of `ns::add`."""
    return cls.__name__.removeprefix("GeneratedBackwardFor_").rpartition("_")[0]


def leaves_behind(y: Any) -> list[Tensor]:
    """Return the leaves to which the graph of an output leads."""
    leaves = (getattr(node, "variable", None) for node in nodes_behind(y))
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in a value: the value itself, or what lists, tuples, sets and dictionaries hold."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, list | tuple | set):
        for item in value:
            yield from tensors_in(item)
