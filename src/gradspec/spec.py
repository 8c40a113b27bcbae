"""What a function promises, as frozen data: nothing in this file computes anything about it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from torch import Tensor, dtype


class Make(Protocol):
    """Draws the tensors of a case: seeded, on the device of the run, with numbers short enough to read."""

    def __call__(self, *shape: int, dtype: dtype | None = None) -> Tensor:
        """Return a new tensor of `shape` (float64 unless told)."""
        ...


@dataclass(frozen=True, kw_only=True)
class Case:
    """One representative call."""

    #: Unique in its spec, in words: it is the name on the command line and in the tables.
    name: str
    #: The positional arguments, tensors included. A law works on copies.
    args: tuple[Any, ...]
    #: The keyword arguments.
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Misuse:
    """A documented wrong call, and the error that it gets."""

    #: The wrong call.
    case: Case
    #: The class of the error.
    error: type[Exception]
    #: A regular expression that the message matches.
    match: str


@dataclass(frozen=True, kw_only=True)
class Argument:
    """What a page says of one argument."""

    #: As in the call.
    name: str
    #: The type, as a reader writes it.
    type: str
    #: Shape in words or symbols; empty where there is none.
    shape: str = ""
    #: The dtypes that are accepted.
    dtype: str = ""
    #: Whether a gradient flows to it.
    gradient: bool = False
    #: One or two sentences, the unit among them where there is one.
    text: str


@dataclass(frozen=True, kw_only=True)
class Supports:
    """What is promised. A promise of no support is tested too: the refusal must be an error."""

    #: Forward-mode differentiation: `torch.func.jvp` and dual tensors.
    forward_mode: bool = True
    #: Differentiating the backward pass.
    double_backward: bool = True
    #: `torch.func.grad` and what is built on it.
    func_grad: bool = True
    #: `torch.vmap`.
    vmap: bool = True
    #: `torch.compile(fullgraph=True)`, forward and backward.
    compile: bool = True
    #: `torch.compile` of a function that calls `torch.func.grad`.
    compile_grad: bool = True
    #: `torch.export.export(...).module()`, then backward.
    export: bool = True


@dataclass(frozen=True, kw_only=True)
class Effects:
    """What a call may do beside returning its value. What is not declared here must not happen."""

    #: The argument of which the output may be a tracked view; None: the output is fresh memory.
    view_of: str | None = None
    #: The arguments that move, once for each forward pass, at the end of the first backward pass through it.
    writes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Formula:
    """The mathematics of an elementwise function, as sympy source over its argument names."""

    #: What forward computes, `"x"`.
    primal: str
    #: The map whose derivative backward applies, `"f * x"`.
    surrogate: str


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One way in which a published implementation behaves otherwise, with what shows it."""

    #: The spec name of the published implementation, as in the record of the peers.
    peer: str
    #: What the published code does, in one sentence.
    published: str
    #: What ours does, and why.
    ours: str
    #: The law that the published code breaks.
    law: str
    #: The case that shows it.
    case: str


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Where a definition comes from."""

    #: Authors, title, year, and the equation or section.
    text: str
    #: A stable address; empty where there is none.
    url: str = ""


@dataclass(frozen=True, kw_only=True)
class FunctionSpec:
    """The promise of one custom autograd function. Read aloud, it is the mathematics.

    Raises:
        ValueError: a name in `wrt` or `arguments` that `primal` does not have, or a `primal` and a `surrogate`
            of different parameters.
    """

    #: Unique in a report.
    name: str
    #: What is under test, called as users call it.
    function: Callable[..., Any]
    #: What forward computes, in plain differentiable torch.
    primal: Callable[..., Any]
    #: The map whose true derivative backward applies: the primal itself, if the gradient is honest.
    surrogate: Callable[..., Any]
    #: The arguments to which a gradient flows.
    wrt: tuple[str, ...]
    #: A generator of representative calls.
    cases: Callable[[Make], Iterator[Case]]
    #: A generator of wrong calls and the error that each gets.
    raises: Callable[[Make], Iterator[Misuse]] | None = None
    #: One sentence that a user could search for.
    summary: str = ""
    #: The arguments of the call, for the page.
    arguments: tuple[Argument, ...] = ()
    #: The `torch.autograd.Function` behind `function`; the laws that look inside need it.
    implementation: type | None = None
    #: The objects whose docstrings carry the examples that the law `examples` runs.
    documents: tuple[Any, ...] = ()
    #: Moves when the promise changes.
    version: int = 1
    supports: Supports = Supports()
    effects: Effects = Effects()
    #: The values to which one forward and one backward pass move the arguments in `effects.writes`, by name.
    state_after: Callable[..., Mapping[str, Tensor]] | None = None
    #: Only for elementwise functions; a page says `not checked` without one.
    formula: Formula | None = None
    references: tuple[Reference, ...] = ()
    differences: tuple[Difference, ...] = ()

    def __post_init__(self) -> None:
        for role in ("function", "primal", "surrogate", "cases"):
            if not callable(getattr(self, role)):
                raise ValueError(f"spec {self.name!r}: {role} is {getattr(self, role)!r}, which cannot be called")
        names = self.parameters
        for name in (*self.wrt, *self.effects.writes, *(argument.name for argument in self.arguments)):
            if name not in names:
                raise ValueError(f"spec {self.name!r}: {name!r} is not a parameter of primal{_shown(names)}")
        if (other := tuple(inspect.signature(self.surrogate).parameters)) != names:
            raise ValueError(
                f"spec {self.name!r}: primal{_shown(names)} and surrogate{_shown(other)} take different arguments"
            )
        if bool(self.effects.writes) != (self.state_after is not None):
            raise ValueError(
                f"spec {self.name!r}: effects.writes is {self.effects.writes!r} and state_after is "
                f"{self.state_after!r}: give both, or neither"
            )

    @property
    def parameters(self) -> tuple[str, ...]:
        """The argument names of the call, in order, read off `primal`."""
        return tuple(inspect.signature(self.primal).parameters)

    def for_(self, function: Callable[..., Any], *, name: str, implementation: type | None = None) -> FunctionSpec:
        """Hold another implementation to the same promise.

        Args:
            function: a published one, a compiled one, a user's; called as this spec's function is.
            name: its name in the report.
            implementation: the `torch.autograd.Function` behind it; read off `function` if it is an `apply`.

        Returns:
            A copy of this spec about `function`, without the examples and differences, which are ours.
        """
        if implementation is None:
            owner = getattr(function, "__self__", None)
            implementation = owner if isinstance(owner, type) else None
        return replace(self, name=name, function=function, implementation=implementation, documents=(), differences=())


def _shown(names: tuple[str, ...]) -> str:
    return f"({', '.join(names)})"
