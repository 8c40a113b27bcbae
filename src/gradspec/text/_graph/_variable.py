"""Variable: a text, a number, or a list of either, that a gradient can reach."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gradspec.text._data import Data, checked
from gradspec.text._graph._merge import Part, distinct
from gradspec.text._graph._place import Placed

if TYPE_CHECKING:
    from gradspec.text._engine._node import Node
    from gradspec.text._scheduling._pending import Pending


class Variable(Placed):
    """A text, a number, or a flat list of texts or of numbers, with a role and a gradient.

    A Variable that `requires_grad` is followed through every `Function`: after `backward`, its `grad` says how it
    should change. Two Variables are equal only if they are the same object.

    Args:
        data: A string, an int or a float, or a list or tuple of strings or of numbers. A list that mixes ints with
            floats becomes floats.
        role: What the Variable is for, in words, as a language model will read it.
        requires_grad: Whether a gradient is wanted.

    Raises:
        TypeError: the data is something else.

    Example:
        >>> from gradspec.text import Variable
        >>> prompt = Variable("Answer the question.", role="system prompt", requires_grad=True)
        >>> answer = prompt + " Be short."
        >>> answer.backward(Variable("too short"))
        >>> prompt.grad.data
        'too short'
    """

    # Most Variables keep most of these defaults; to write them out for each would double the cost of making one.
    _grad: Variable | None = None
    #: Of a gradient: the node that wrote it, by name, and the roles of that node's outputs.
    _origin: tuple[str, tuple[str, ...]] | None = None

    def __init__(self, data: Data | Sequence[Any] = "", role: str = "", requires_grad: bool = False) -> None:
        self._data = data if type(data) is str else checked(data)
        #: What it is for, in words.
        self.role = role
        self._requires_grad = requires_grad

    @classmethod
    def _tracked(cls, data: Data, role: str, node: Node, output_nr: int) -> Variable:
        """Return an output of a node, made without another look at its data."""
        variable = cls.__new__(cls)
        variable._data, variable.role, variable._requires_grad = data, role, True
        variable._grad_fn, variable._output_nr = node, output_nr
        return variable

    @classmethod
    def _deferred(cls, pending: Pending, role: str) -> Variable:
        """Return a Variable whose data is on its way."""
        variable = cls("", role)
        variable._data, variable._kind, variable._pending = None, pending.kind, pending
        return variable

    def requires_grad_(self, requires_grad: bool = True) -> Variable:
        """Assign `requires_grad`, and return the Variable."""
        self.requires_grad = requires_grad
        return self

    @property
    def grad(self) -> Variable | None:
        """What `backward` accumulated, as one Variable with `parts`, or None."""
        if self._grad is None and self._grad_fn is not None and not self._retains_grad:
            warnings.warn(
                "The .grad attribute of a Variable that is not a leaf is being accessed. It is not filled by "
                "backward(); call .retain_grad() on the Variable before, or read the .grad of a leaf.",
                UserWarning,
                stacklevel=2,
            )
        return self._grad

    @grad.setter
    def grad(self, grad: Variable | None) -> None:
        if grad is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if grad is not None and not isinstance(grad, Variable):
            raise TypeError(
                f"assigned grad expected to be a Variable or None but got grad of type {type(grad).__name__}"
            )
        self._grad = grad

    @property
    def parts(self) -> tuple[Part, ...]:
        """What a gradient is made of, in order, each once; a Variable that was never merged is its own only part."""
        return tuple(
            Part(data=atom.data, role=atom.role, source=source, outputs=outputs)
            for atom in distinct(self)
            for source, outputs in [atom._origin or ("", ())]
        )

    def backward(
        self,
        gradient: Variable | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Variable | Iterable[Variable] | None = None,
        *,
        max_concurrency: int | None = None,
    ) -> None:
        """Run `gradspec.text.backward` from this Variable."""
        from gradspec.text._graph._backward import backward

        backward(self, gradient, retain_graph, create_graph, inputs, max_concurrency=max_concurrency)

    async def backward_async(
        self,
        gradient: Variable | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Variable | Iterable[Variable] | None = None,
        *,
        max_concurrency: int | None = None,
    ) -> None:
        """Run `gradspec.text.backward_async` from this Variable."""
        from gradspec.text._graph._backward import backward_async

        await backward_async(self, gradient, retain_graph, create_graph, inputs, max_concurrency=max_concurrency)

    def detach(self) -> Variable:
        """Return a leaf of the same data and role that no gradient reaches; to assign its data leaves this as it is."""
        return Variable(self.data, self.role)

    async def ready(self) -> Variable:
        """Wait for data that is on its way without holding the event loop up; return the Variable."""
        if self._pending is not None:
            await self._pending.aresult()
        return self

    def __add__(self, other: Variable | str | float) -> Variable:
        from gradspec.text._graph._add import add as add_op

        return add_op(self, other)

    def __radd__(self, other: str | float) -> Variable:
        from gradspec.text._graph._add import add as add_op

        return add_op(other, self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Variable:
        if self._grad_fn is not None:
            raise RuntimeError(
                "Only Variables created explicitly by the user (graph leaves) support the deepcopy protocol; "
                "copy var.detach() instead."
            )
        copy = memo[id(self)] = Variable(self.data, self.role, self._requires_grad)
        if self._grad is not None:
            copy._grad = self._grad.__deepcopy__(memo)
        return copy

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: of a leaf neither its gradient nor its hooks and its place in graphs, as in torch."""
        state = dict(vars(self))
        if self._grad_fn is None:
            state["_data"] = self.data
            for name in ("_grad", "_accumulator", "_hooks", "_grad_hooks", "_pending"):
                state.pop(name, None)
        return state

    def __repr__(self) -> str:
        role = f", role={self.role!r}" if self.role else ""
        if self._grad_fn is not None:
            return f"Variable({self.data!r}{role}, grad_fn=<{self._grad_fn.name()}>)"
        return f"Variable({self.data!r}{role}{', requires_grad=True' if self._requires_grad else ''})"
