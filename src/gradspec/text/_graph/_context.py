"""The node of a Function's call, which is also the `ctx` that its forward and backward get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, ClassVar

from gradspec.text._costs import Cost, Rows, cost_of
from gradspec.text._data import Kind, holds_itself
from gradspec.text._engine._deferred import Deferred, resolve
from gradspec.text._engine._hooks import replace_each
from gradspec.text._engine._node import MADE, CallNode, next_rank
from gradspec.text._engine._reach import NARROWED
from gradspec.text._grad_mode import ENABLED
from gradspec.text._graph._arguments import CONTAINERS, Nested, count_of, edge_of, variables_in
from gradspec.text._graph._merge import kind_of
from gradspec.text._graph._returned import check_kinds, gradients_of, stamped
from gradspec.text._graph._saved import FREED, unpack
from gradspec.text._graph._variable import Variable

if TYPE_CHECKING:
    from gradspec.text._graph._function import Function
    from gradspec.text._scheduling._pending import Pending

#: The slots of a call whose one argument is a Variable.
ALONE = (1,)


class FunctionNode(CallNode):
    """What a Function's `forward` and `backward` share: it keeps what they save, and is the node of the graph.

    Any attribute may be set on it. Keep Variables only by `save_for_backward`, which notices a change of
    their data and makes no reference cycle of an output.
    """

    _function: ClassVar[type[Function]]
    _slots: tuple[int | Nested | None, ...] = ()
    _needs: tuple[bool, ...] = ()
    #: What each Variable in the arguments holds; None where each holds one text.
    _kinds: tuple[Kind, ...] | None = None
    #: How many gradients `backward` must return at least: defaults that were left out need none.
    _least = 0
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
        return tuple([any([*islice(wants, count_of(slot))]) for slot in self._slots])

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
        """The values saved by `save_for_backward`, in its order.

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
            if any(type(variable._data) is not str for variable in variables):
                self._kinds = tuple([kind_of(variable) for variable in variables])
        return variables

    def _looked_into(self, value: Any, variables: list[Variable]) -> Nested | None:
        try:
            return variables_in(value, variables)
        except RecursionError:
            raise holds_itself(f"an argument of {self._function.__name__}") from None

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
            alone = (stamped(values[0], self),)
            check_kinds(self, alone)
            return alone
        gradients = gradients_of(self, values)
        return replace_each(self._posthooks, tuple(gradients), tuple(given)) if self._posthooks else gradients

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
