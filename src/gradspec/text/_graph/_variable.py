"""Variable: a text, a number, or a list of either, that a gradient can reach."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import ref

from gradspec.text._graph._hooks import HookHandle, Hooks
from gradspec.text._graph._merge import Data, Kind, Part, add, distinct, kind, render

if TYPE_CHECKING:
    from gradspec.text._graph._node import AccumulateGrad, Node
    from gradspec.text._scheduling._pending import Pending


class Variable:
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
    _grad_fn: Node | None = None
    _output_nr = 0
    _version = 0
    _retains_grad = False
    #: The node of a leaf; weak, for the node holds the leaf.
    _accumulator: ref[AccumulateGrad] | None = None
    #: The hooks of a leaf; those of another Variable are with its node.
    _hooks: Hooks | None = None
    _grad_hooks: Hooks | None = None
    #: Of a merged gradient: what it is made of. Its data is None until somebody reads it.
    _sources: tuple[Variable, ...] = ()
    _kind: Kind | None = None
    #: Of an answer that is on its way: what to wait for.
    _pending: Pending | None = None
    #: Of an answer that has JSON data: the data, once it is there.
    _values: list[Any] | None = None
    #: Of a gradient: the node that wrote it, by name, and the roles of that node's outputs.
    _origin: tuple[str, tuple[str, ...]] | None = None
    _data: Data | None

    def __init__(self, data: Data | Sequence[Any] = "", role: str = "", requires_grad: bool = False) -> None:
        self._data = data if type(data) is str else _checked(data)
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
    def _later(cls, pending: Pending, role: str) -> Variable:
        """Return a Variable whose data is on its way."""
        variable = cls("", role)
        variable._data, variable._kind, variable._pending = None, pending.kind, pending
        return variable

    @property
    def data(self) -> Data:
        """The text, the number, or the list; to assign it moves `version`. Data on its way is waited for."""
        if self._data is None:
            self._data = render(self) if self._pending is None else self._pending.result()
        return self._data

    @data.setter
    def data(self, data: Data | Sequence[Any]) -> None:
        self._data = _checked(data)
        self._version += 1
        self._sources, self._pending, self._kind, self._values = (), None, None, None
        if self._grad_fn is not None:
            self._grad_fn._output_changed(self._output_nr)

    @property
    def value(self) -> Any:
        """The answer as JSON data, where `chat` was given a schema, and else None; for a list, a list of them.

        It is waited for like `data`, and gone when `data` is assigned.
        """
        if not self._values and self._pending is not None:
            self._pending.result()
        return self._values[0] if self._values else None

    @property
    def version(self) -> int:
        """How often the data was assigned; `backward` refuses what was saved at another version."""
        return self._version

    @property
    def requires_grad(self) -> bool:
        """Whether a gradient is wanted; only a leaf's can be assigned."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if self._grad_fn is not None:
            hint = (
                ""
                if value
                else " If you want to use a computed variable in a subgraph that doesn't require differentiation use "
                "var_no_grad = var.detach()."
            )
            raise RuntimeError(f"you can only change requires_grad flags of leaf variables.{hint}")
        self._requires_grad = bool(value)

    def requires_grad_(self, requires_grad: bool = True) -> Variable:
        """Assign `requires_grad`, and return the Variable."""
        self.requires_grad = requires_grad
        return self

    @property
    def grad_fn(self) -> Node | None:
        """The node of the call that made it; None for a leaf."""
        return self._grad_fn

    @property
    def output_nr(self) -> int:
        """Its place among all that the call returned; 0 for a leaf."""
        return self._output_nr

    @property
    def is_leaf(self) -> bool:
        """Whether no tracked call made it."""
        return self._grad_fn is None

    @property
    def retains_grad(self) -> bool:
        """Whether it keeps its gradient although it is not a leaf."""
        return self._retains_grad

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
            raise TypeError(f"assigned grad expected to be a Variable or None but got grad of type {_type(grad)}")
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
        from gradspec.text._engine._backward import backward

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
        from gradspec.text._engine._backward import backward_async

        await backward_async(self, gradient, retain_graph, create_graph, inputs, max_concurrency=max_concurrency)

    def retain_grad(self) -> None:
        """Let `backward` fill `grad` although this is not a leaf; on a leaf it changes nothing."""
        if not self._requires_grad:
            raise RuntimeError("can't retain_grad on Variable that has requires_grad=False")
        if self._grad_fn is not None and not self._retains_grad:
            if self._grad_fn._retained is None:
                self._grad_fn._retained = {}
            self._grad_fn._retained[self._output_nr] = ref(self)
            self._retains_grad = True

    def register_hook(self, hook: Callable[[Variable], Variable | None]) -> HookHandle:
        """Call `hook(gradient)` when the gradient of this Variable is complete; it may return another one.

        It is not called where no gradient arrives.
        """
        if not self._requires_grad:
            raise RuntimeError("cannot register a hook on a variable that doesn't require gradient")
        if self._grad_fn is not None:
            return self._grad_fn._hook_output(self._output_nr, hook)
        if self._hooks is None:
            self._hooks = {}
            node = self._accumulator() if self._accumulator is not None else None
            if node is not None:
                node._variable_hooks = {0: self._hooks}
        return HookHandle(self._hooks, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Variable], None]) -> HookHandle:
        """Call `hook(variable)` once a backward pass has filled the `.grad` of this leaf."""
        if not self._requires_grad:
            raise RuntimeError("cannot register a hook on a variable that doesn't require gradient")
        if self._grad_fn is not None:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf variables")
        if self._grad_hooks is None:
            self._grad_hooks = {}
        return HookHandle(self._grad_hooks, hook)

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

    def __format__(self, spec: str) -> str:
        return format(self.data, spec) if spec else str(self)

    def __str__(self) -> str:
        return str(self.data)

    def __repr__(self) -> str:
        role = f", role={self.role!r}" if self.role else ""
        if self._grad_fn is not None:
            return f"Variable({self.data!r}{role}, grad_fn=<{self._grad_fn.name()}>)"
        return f"Variable({self.data!r}{role}{', requires_grad=True' if self._requires_grad else ''})"


def merge(gradients: Sequence[Variable]) -> Variable:
    """Return several gradients of one Variable as one, in their order.

    Numbers are added, each as often as it arrived. Texts are listed, the same Variable once however many paths
    brought it: were it written out for each path, k stacked diamonds would make 2^k copies.

    Raises:
        RuntimeError: some are texts and some numbers, or they are lists of different lengths.
    """
    first = gradients[0]
    if len(gradients) == 1:
        return first
    what = kind_of(first)
    for other in gradients:
        if kind_of(other) != what:
            raise RuntimeError(
                f"two gradients of one Variable cannot be merged: {first!r} and {other!r}; they must be both text or "
                "both numbers, single or in lists of one length"
            )
    if what[0] is str:
        gradients = list({id(gradient): gradient for gradient in gradients}.values())
        return merged(gradients) if len(gradients) > 1 else first
    total = merged(gradients)
    total._data = add(gradients)
    return total


def merged(gradients: Sequence[Variable]) -> Variable:
    """Return one gradient made of others, its text not yet written out."""
    variable = Variable.__new__(Variable)
    variable._data = gradients[0]._data if len(gradients) == 1 else None
    variable._kind = kind_of(gradients[0])
    variable._sources = tuple(gradients)
    variable._requires_grad = False
    roles = {gradient.role for gradient in gradients}
    variable.role = roles.pop() if len(roles) == 1 else "feedback"
    return variable


def kind_of(gradient: Variable) -> Kind:
    """Return what a gradient can be merged with, without writing its text out."""
    return gradient._kind if gradient._kind is not None else kind(gradient.data)


def _checked(data: object) -> Data:
    if isinstance(data, str | int | float):
        return data
    if isinstance(data, list | tuple):
        if all(isinstance(item, str) for item in data):
            return list(data)
        if all(isinstance(item, int | float) for item in data):
            return [float(item) for item in data] if any(isinstance(item, float) for item in data) else list(data)
        types = sorted({_type(item) for item in data})
        raise TypeError(f"a Variable's list holds only strings or only numbers; this one has {', '.join(types)}")
    raise TypeError(
        f"a Variable holds a string, a number, or a flat list of either, not {_type(data)}; "
        "write it out as a string first"
    )


def _type(value: object) -> str:
    return type(value).__name__
