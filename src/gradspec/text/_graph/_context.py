"""The node of a Function's call, which is also the `ctx` that its forward and backward get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from gradspec.text._costs import Cost, Rows, cost_of
from gradspec.text._graph._arguments import CONTAINERS, Nested, edge_of, holds_itself, variables_in
from gradspec.text._graph._grad_mode import ENABLED
from gradspec.text._graph._hooks import replace_each
from gradspec.text._graph._later import Deferred, resolve
from gradspec.text._graph._merge import zero
from gradspec.text._graph._node import MADE, Edge, Node, next_rank
from gradspec.text._graph._saved import FREED, pack, unpack
from gradspec.text._graph._variable import Variable

if TYPE_CHECKING:
    from gradspec.text._graph._function import Function
    from gradspec.text._scheduling._pending import Pending


class Wanted(Protocol):
    """A backward pass that was asked for the gradients of some Variables alone."""

    def wants(self, edge: Edge) -> bool:
        """Return whether this pass needs the gradient that goes along an edge."""


#: The pass that is running, if it does not want every gradient. The node itself is not touched, so that two passes
#: over one graph may run at once.
NARROWED: ContextVar[Wanted | None] = ContextVar("gradspec.text.narrowed", default=None)


#: The slots of a call whose one argument is a Variable.
ALONE = (1,)


class FunctionNode(Node):
    """What a Function's `forward` and `backward` share: it keeps what they save, and is the node of the graph.

    Any attribute may be set on it. Keep Variables only by `save_for_backward`, which notices a change of
    their data and makes no reference cycle of an output.
    """

    _function: ClassVar[type[Function]]
    _slots: tuple[int | Nested | None, ...] = ()
    _needs: tuple[bool, ...] = ()
    #: How many gradients `backward` must return at least: defaults that were left out need none.
    _least = 0
    _origin: tuple[str, tuple[str, ...]] = ("", ())
    _outputs = 1
    _to_save: tuple[Any, ...] = ()
    _saved: tuple[Any, ...] | None = None
    _freed = False
    #: What forward has not computed yet; a pass waits for it before it makes its first call.
    _pending: Pending | None = None
    #: What its calls of models cost; None before the first.
    _costs: Rows | None = None
    #: Whether there was anything to free.
    _lost = False
    _materialize = False
    _zeros: tuple[Any, ...] = ()
    _changed_outputs: frozenset[int] = frozenset()

    def __init__(self) -> None:
        self._rank = next_rank()
        made = MADE.get()
        if made is not None:
            made.append(self)

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """Whether each argument of forward needs a gradient, in the order of forward's signature.

        Inside a backward pass with `inputs=`: whether that pass needs it, so that no call is made in vain.
        """
        wanted = NARROWED.get()
        if wanted is None:
            return self._needs
        wants = iter([wanted.wants(edge) for edge in self._edges])
        return tuple([any([*islice(wants, _count(slot))]) for slot in self._slots])

    def wants(self, variable: Variable) -> bool:
        """Return whether a gradient of this Variable, found anywhere in the arguments, is of use to the pass.

        An argument that is a list or a dict has one flag in `needs_input_grad` for all the Variables in it.
        """
        if not variable._requires_grad:
            return False
        wanted = NARROWED.get()
        return wanted is None or wanted.wants(edge_of(variable))

    def save_for_backward(self, *values: Any) -> None:
        """Keep values for `backward`: Variables, any other values, and containers of both.

        To be called once in `forward` or `setup_context`. A Variable whose data is assigned between here and
        `backward` is an error there.
        """
        self._to_save = values

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """What `save_for_backward` kept, in its order.

        Raises:
            RuntimeError: a Variable among them was changed since, or an earlier backward pass freed them.
        """
        if self._freed:
            raise RuntimeError(FREED)
        if self._saved is None:
            return self._to_save
        return tuple(map(unpack, self._saved, repeat(self)))

    def forward_cost(self, prices: Mapping[str, tuple[float, float]] | None = None) -> Cost:
        """Return what the models cost that forward asked, as far as they have answered.

        Args:
            prices: For each model the price of a million tokens, of messages and of replies.
        """
        return cost_of(self._costs, "forward", prices)

    def backward_cost(self, prices: Mapping[str, tuple[float, float]] | None = None) -> Cost:
        """Return what the models cost that backward asked, in all passes so far.

        Args:
            prices: For each model the price of a million tokens, of messages and of replies.
        """
        return cost_of(self._costs, "backward", prices)

    def set_materialize_grads(self, value: bool) -> None:
        """Give `backward` an empty text (or 0) for an output that no gradient reached, and not None."""
        self._materialize = value

    def _track(self, inputs: tuple[Any, ...], least: int) -> list[Variable]:
        """Note where the gradients of the arguments go, and return the Variables among them."""
        variables: list[Variable] = []
        slots: list[int | Nested | None] = []
        needs: list[bool] = []
        for value in inputs:
            if isinstance(value, Variable):
                variables.append(value)
                slots.append(1)
                needs.append(value._requires_grad)
            elif isinstance(value, CONTAINERS):
                first = len(variables)
                slots.append(self._looked_into(value, variables))
                needs.append(any(variable._requires_grad for variable in variables[first:]))
            else:
                slots.append(None)
                needs.append(False)
        self._slots, self._needs, self._least = tuple(slots), tuple(needs), least
        if True in needs and ENABLED.get():
            self._edges = tuple([edge_of(variable) for variable in variables])
        return variables

    def _looked_into(self, value: Any, variables: list[Variable]) -> Nested | None:
        try:
            return variables_in(value, variables)
        except RecursionError:
            raise holds_itself(f"an argument of {self._function.__name__}") from None

    def _finish(self, output: Any, inputs: list[Variable]) -> Any:
        """Return what forward returned, its Variables put into the graph, and keep what backward will need."""
        is_tuple = isinstance(output, tuple)
        outputs = output if is_tuple else (output,)
        if not self._edges:
            self._to_save = ()
            outputs = [_untracked(value, inputs) for value in outputs]
            return tuple(outputs) if is_tuple else outputs[0]
        outputs = [self._output(value, place, inputs) for place, value in enumerate(outputs)]
        self._outputs = len(outputs)
        self._origin = (
            type(self).__name__,
            tuple([value.role for value in outputs if isinstance(value, Variable)]),
        )
        if self._to_save:
            try:
                self._saved, self._to_save = tuple([pack(value, self) for value in self._to_save]), ()
            except RecursionError:
                raise holds_itself(f"what {self._function.__name__} saved for backward") from None
        if self._materialize:
            self._zeros = tuple([zero(value.data) if isinstance(value, Variable) else None for value in outputs])
        return tuple(outputs) if is_tuple else outputs[0]

    def _output(self, value: Any, place: int, inputs: list[Variable]) -> Any:
        if not isinstance(value, Variable):
            if isinstance(value, list | dict) and self._returned(value):
                raise TypeError(
                    f"forward returned a {type(value).__name__} that holds Variables, which no gradient would reach; "
                    "return them in a tuple"
                )
            return value
        in_a_graph = value._grad_fn is not self and (value._grad_fn is not None or value._accumulator is not None)
        if in_a_graph or any(value is variable for variable in inputs):
            return Variable._tracked(value.data, value.role, self, place)
        value._grad_fn, value._output_nr, value._requires_grad = self, place, True
        return value

    def _returned(self, value: Any) -> Nested | None:
        try:
            return variables_in(value, [])
        except RecursionError:
            raise holds_itself(f"what {self._function.__name__} returned") from None

    def _before(self, gradients: list[Variable | None]) -> tuple[Variable | None, ...]:
        """Return the gradients of the outputs as the hooks left them."""
        given = tuple(gradients)
        return replace_each(self._prehooks, given) if self._prehooks else given

    def _filled(self, given: tuple[Variable | None, ...]) -> tuple[Variable | None, ...]:
        """Return them as `backward` gets them: with nothing said in so many words, if forward asked for that."""
        if not self._zeros:
            return given
        return tuple(
            [Variable(z) if g is None and z is not None else g for g, z in zip(given, self._zeros, strict=True)]
        )

    def _after(self, returned: Any, given: Sequence[Variable | None]) -> Sequence[Variable | None]:
        """Return what `backward` returned as one gradient, or None, for each edge."""
        if isinstance(returned, Deferred):
            returned = resolve(returned)
        values = returned if isinstance(returned, tuple) else (returned,)
        if len(values) == 1 and self._slots == ALONE and not self._posthooks:
            return (self._stamped(values[0]),)
        gradients: list[Variable | None] = []
        if len(values) != len(self._slots):
            values = self._counted(values)
        for place, (slot, value) in enumerate(zip(self._slots, values, strict=False)):
            if slot == 1:
                gradients.append(self._stamped(value))
            elif slot is not None:
                self._structured(slot, value, place, gradients)
            elif value is not None:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position {place}, but the "
                    "corresponding forward input was not a Variable"
                )
        if len(gradients) < len(self._edges):
            gradients += [None] * (len(self._edges) - len(gradients))
        if self._posthooks:
            return replace_each(self._posthooks, tuple(gradients), tuple(given))
        return gradients

    def _counted(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        expected, got = len(self._slots), len(values)
        if got > expected and all(value is None for value in values[expected:]):
            values = values[:expected]
        elif not self._least <= got <= expected:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {expected}, got {got})"
            )
        return values

    def _stamped(self, returned: Any) -> Variable | None:
        gradient = returned if isinstance(returned, Variable) else resolve(returned)
        if gradient is None:
            return None
        if not isinstance(gradient, Variable):
            raise RuntimeError(f"expected Variable or None (got {type(gradient).__name__})")
        if gradient._requires_grad:
            gradient = gradient.detach()  # an argument returned as a gradient would be kept by its own grad
        if gradient._origin is None:
            gradient._origin = self._origin
        return gradient

    def _structured(self, slot: int | Nested, value: Any, place: int, gradients: list[Variable | None]) -> None:
        value = resolve(value)
        if isinstance(slot, int) or value is None:
            gradients += [None] * _count(slot) if value is None else [self._stamped(value)]
            return
        fits = (
            isinstance(value, dict) if slot.is_dict else isinstance(value, list | tuple) and len(value) == slot.length
        )
        if not fits:
            wanted = "a dict" if slot.is_dict else f"a list of {slot.length}"
            raise RuntimeError(
                f"function {self.name()} returned a {type(value).__name__} at position {place}, where the argument "
                f"holds Variables: return None or {wanted}, with a gradient or None in the place of each Variable"
            )
        for key, inner in slot.items.items():
            item = value.get(key) if slot.is_dict else value[key]
            self._structured(inner, item, place, gradients)

    def _check(self) -> None:
        """Raise now what backward would meet when it reads what was saved: before any call is paid for."""
        if self._pending is not None:
            self._pending.result()
        if self._lost:
            raise RuntimeError(FREED)
        if self._saved is not None:
            for value in self._saved:
                unpack(value, self)

    def _free(self) -> None:
        # As in torch: a node that saved nothing may run again, unless it reads `saved_variables`.
        if self._saved is not None:
            self._saved, self._lost = None, True
        self._freed = True

    def _output_changed(self, output_nr: int) -> None:
        self._changed_outputs |= {output_nr}


def _count(slot: int | Nested | None) -> int:
    if isinstance(slot, Nested):
        return sum(_count(inner) for inner in slot.items.values())
    return slot or 0


def _untracked(value: Any, inputs: list[Variable]) -> Any:
    if not isinstance(value, Variable):
        return value
    if any(value is given for given in inputs):
        return value.detach()
    if value._requires_grad:
        if value._grad_fn is not None or value._accumulator is not None:
            return value.detach()
        value._requires_grad = False
    return value
