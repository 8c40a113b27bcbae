"""Storage of `save_for_backward`: values as they are, and Variables with the version that they had."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from gradspec.text._data import Data
from gradspec.text._graph._variable import Variable

if TYPE_CHECKING:
    from gradspec.text._graph._context import FunctionNode

FREED = (
    "Trying to backward through the graph a second time (or directly access saved variables after they have already "
    "been freed). Saved intermediate values of the graph are freed when you call .backward() or grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved "
    "variables after calling backward."
)


class SavedInput(NamedTuple):
    """A Variable that is not an output of the node that saves it."""

    variable: Variable
    version: int
    #: A copy of list data: to write into the list that `.data` gives moves no version. None for a list on its way,
    #: and for what is not a list.
    items: list[Any] | None

    def unpack(self, node: FunctionNode) -> Variable:
        """Return the Variable, unless its data has changed since it was saved."""
        variable = self.variable
        if variable._version != self.version:
            raise changed(
                f"{variable!r} is at version {variable._version}; expected version {self.version} instead", node
            )
        if self.items is not None and variable._data != self.items:
            raise changed(f"the list in .data of {variable!r} was written into; it was {self.items!r}", node)
        return variable


class SavedOutput(NamedTuple):
    """An output, by number: to hold it would make a cycle, for it holds the node."""

    output_nr: int
    data: Data
    role: str

    def unpack(self, node: FunctionNode) -> Variable:
        """Return a Variable like the output, at the same place of the graph."""
        if self.output_nr in node._changed_outputs:
            raise changed(f"output {self.output_nr} (role {self.role!r}) was assigned new data", node)
        return Variable._tracked(self.data, self.role, node, self.output_nr)


def pack(value: Any, node: FunctionNode) -> Any:
    """Return what a node keeps of a value, containers rebuilt so that Variables inside them are kept likewise."""
    if isinstance(value, Variable):
        if value._pending is not None and value._data is None and value._grad_fn is not node:
            return SavedInput(value, value._version, None)
        data = value.data
        if value._grad_fn is node:
            return SavedOutput(value._output_nr, list(data) if isinstance(data, list) else data, value.role)  # type: ignore[arg-type]
        return SavedInput(value, value._version, list(data) if isinstance(data, list) else None)
    if isinstance(value, list | tuple | dict):
        return rebuilt(value, [pack(item, node) for item in (value.values() if isinstance(value, dict) else value)])
    return value


def rebuilt(container: Any, items: list[Any]) -> Any:
    """Return a container like another, a named tuple or a dict with an order of its own too, with other items."""
    if type(container) is list:
        return items
    if isinstance(container, tuple):
        return container._make(items) if hasattr(container, "_make") else tuple(items)
    copied = copy(container)
    if isinstance(container, dict):
        copied.update(zip(container, items, strict=True))
    else:
        copied[:] = items
    return copied


def unpack(value: Any, node: FunctionNode) -> Any:
    """Return the value that was packed.

    Raises:
        RuntimeError: a Variable in it was changed since.
    """
    kind = type(value)
    if kind is SavedInput:
        variable, version, items = value
        # Most Variables are texts that nobody assigned: every pass looks at each of them twice.
        return variable if items is None and variable._version == version else value.unpack(node)
    if kind is SavedOutput:
        return value.unpack(node)
    if isinstance(value, list | tuple | dict):
        return rebuilt(value, [unpack(item, node) for item in (value.values() if isinstance(value, dict) else value)])
    return value


def changed(what: str, node: FunctionNode) -> RuntimeError:
    """Return the error for a saved Variable whose data moved after forward."""
    return RuntimeError(
        f"one of the variables needed for gradient computation has been modified by an inplace operation: {what}. "
        f"{node.name()} saved it in forward. Make a new Variable for the new data, or run backward first."
    )
