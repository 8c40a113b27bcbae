"""A Variable under TextGrad's names."""

from __future__ import annotations

from collections.abc import Iterator, MutableSet, Sequence

from gradspec.text import Data, mermaid
from gradspec.text import Variable as Plain
from gradspec.text._graph._gradients import merge
from gradspec.text._graph._merge import distinct
from gradspec.text.textgrad._absent import refuse
from gradspec.text.textgrad._backward import backward
from gradspec.text.textgrad._shown import ends_of
from gradspec.text.textgrad.engine.base import Engine


class Variable:
    """A text with a role, and what was said of it; TextGrad's names for a `gradspec.text.Variable`.

    It is a view: two of them are equal if they show the same Variable, which is `plain`.

    Args:
        value: A text or a number.
        image_path: Not supported.
        predecessors: Not supported: only calls put Variables into a graph.
        requires_grad: Whether feedback on it is wanted.
        role_description: What it is for, in words, as a language model will read it.

    Raises:
        TypeError: the value is neither a text nor a number, or one of the two unsupported arguments is given.

    Example:
        >>> from gradspec.text.textgrad import Variable
        >>> prompt = Variable("Answer.", role_description="system prompt")
        >>> prompt.gradients.add(Variable("Too short.", role_description="feedback"))
        >>> prompt.get_gradient_text()
        'Too short.'
    """

    def __init__(
        self,
        value: Data = "",
        image_path: str = "",
        predecessors: Sequence[Variable] | None = None,
        requires_grad: bool = True,
        *,
        role_description: str,
    ) -> None:
        refuse(value, image_path, predecessors)
        #: The Variable of `gradspec.text` that this one shows.
        self.plain = Plain(value, role=role_description, requires_grad=requires_grad)
        #: The Variables that the call which made it was given.
        self.predecessors: tuple[Variable, ...] = ()

    @classmethod
    def of(cls, plain: Plain, predecessors: Sequence[Variable] = ()) -> Variable:
        """Return a view of a `gradspec.text.Variable`.

        Args:
            plain: The Variable to show.
            predecessors: What it was made of.
        """
        view = cls.__new__(cls)
        view.plain, view.predecessors = plain, tuple(predecessors)
        if plain.requires_grad:
            plain.retain_grad()  # in TextGrad every Variable keeps what was said of it
        return view

    def __eq__(self, other: object) -> bool:
        return self.plain is other.plain if isinstance(other, Variable) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.plain)

    def __add__(self, other: Variable | str) -> Variable:
        views = [self, other] if isinstance(other, Variable) else [self]
        return Variable.of(self.plain + (other.plain if isinstance(other, Variable) else other), views)

    def __str__(self) -> str:
        return str(self.value)

    def __repr__(self) -> str:
        return f"Variable(value={self.value!r}, role={self.role_description!r}, grads={[*map(str, self.gradients)]})"

    @property
    def value(self) -> Data:
        """The text or the number; one that is on its way is waited for."""
        return self.plain.data

    @value.setter
    def value(self, value: Data) -> None:
        self.plain.data = value

    @property
    def role_description(self) -> str:
        """What it is for, in words."""
        return self.plain.role

    @role_description.setter
    def role_description(self, role_description: str) -> None:
        self.plain.role = role_description

    @property
    def requires_grad(self) -> bool:
        """Whether feedback on it is wanted."""
        return self.plain.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.plain.requires_grad = value

    @property
    def gradients(self) -> Gradients:
        """What was said of it, in order; a set that can be changed."""
        return Gradients(self.plain)

    def get_value(self) -> Data:
        """Return `value`."""
        return self.value

    def set_value(self, value: Data) -> None:
        """Assign `value`."""
        self.value = value

    def get_role_description(self) -> str:
        """Return `role_description`."""
        return self.role_description

    def set_role_description(self, role_description: str) -> None:
        """Assign `role_description`."""
        self.role_description = role_description

    def get_gradient_text(self) -> str:
        """Return all that was said of it, a line each."""
        return "\n".join(map(str, self.gradients))

    def reset_gradients(self) -> None:
        """Forget what was said of it."""
        self.plain.grad = None

    def get_short_value(self, n_words_offset: int = 10) -> str:
        """Return the first and the last words.

        Args:
            n_words_offset: How many words of each.
        """
        return ends_of(str(self), n_words_offset)

    def backward(self, engine: Engine | str | None = None) -> None:
        """Ask, call by call, what should change in all that it was made of.

        Calls overlap inside `gradspec.text.concurrency(k)`. The graph is kept, so that two losses may share calls.

        Args:
            engine: Who is asked; None is the engine of `set_backward_engine`.

        Raises:
            ValueError: there is no engine.
            RuntimeError: no feedback is wanted of anything in it, or a Variable was changed since the call.
        """
        backward(self.plain, engine)

    def generate_graph(self, print_gradients: bool = False) -> str:
        """Return the graph behind the Variable as a Mermaid flowchart, a text.

        Args:
            print_gradients: Whether it shows the whole texts and feedback.
        """
        return mermaid(self.plain, width=None if print_gradients else 60)


class Gradients(MutableSet[Variable]):
    """What was said of a Variable, in order, each once."""

    def __init__(self, plain: Plain) -> None:
        self._plain = plain

    def __repr__(self) -> str:
        return f"Gradients({[*map(str, self)]})"

    def __iter__(self) -> Iterator[Variable]:
        grad = self._plain._grad
        return iter([] if grad is None else [Variable.of(atom) for atom in distinct(grad)])

    def __len__(self) -> int:
        return len([*iter(self)])

    def __contains__(self, gradient: object) -> bool:
        return gradient in [*iter(self)]

    def add(self, gradient: Variable) -> None:
        """Add what is said of the Variable."""
        self._are([*self, gradient])

    def discard(self, gradient: Variable) -> None:
        """Take out what was said, if it is there."""
        self._are([other for other in self if other != gradient])

    def _are(self, gradients: Sequence[Variable]) -> None:
        self._plain.grad = merge([gradient.plain for gradient in gradients]) if gradients else None
