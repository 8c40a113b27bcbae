"""The spec of a text Function, as frozen data. `gradspec.text` provides its case types; it is not imported here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from gradspec._renamed import renamed
from gradspec.spec._base import Argument, Case, Difference, Misuse, Reference, Spec, check_callable
from gradspec.spec._base import Waiver as Waiver  # Sphinx resolves here what the fields of the base are made of
from gradspec.spec._invocation import Invocation


class TextMaker:
    """Makes the Variables of a case: leaves that want a gradient. What should get none is written as plain data."""

    def __call__(self, data: Any, role: str = "") -> Any:
        """Return a new leaf.

        Args:
            data: a text, a number, or a flat list of either.
            role: what it is for, in words.
        """
        return _text().Variable(data, role, requires_grad=True)


@dataclass(frozen=True, kw_only=True)
class TextCase(Case):
    """One representative call, what is said of its outputs, and what the backward then says of its arguments."""

    #: What is said of each Variable among the outputs, in their order: a text, a number, a list of them, or None for
    #: nothing. Left out, a sentence is said of each text and 1 of each number. Of a wrong call: the backward is wrong.
    feedback: tuple[Any, ...] | None = None
    #: What the gradient of an argument is then, by where its Variable is (`"x"`, `"texts[0]"`,
    #: `"values['name']"`): its data, None for no gradient, or a predicate of its data.
    says: Mapping[str, Any] = field(default_factory=dict)


@renamed(documents="documented", attempt="invocation")
@dataclass(frozen=True, kw_only=True)
class TextSpec(Spec):
    """The promise of one operation on text Variables.

    Raises:
        ValueError: `function`, `primal` or `cases` cannot be called, or a name in `wrt` or `arguments` is not a
            parameter of `primal`.

    Example:
        >>> from gradspec import TextCase, TextSpec, verify
        >>> from gradspec.text import Function, Variable
        >>> class Shout(Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return Variable(x.data.upper())
        ...     @staticmethod
        ...     def backward(ctx, grad_out):
        ...         return Variable(f"Before it was made loud: {grad_out.data}")
        >>> def cases(make):
        ...     says = {"x": "Before it was made loud: too loud"}
        ...     yield TextCase(name="a word", args=(make("hi", role="greeting"),), feedback=("too loud",), says=says)
        >>> def primal(x):
        ...     return x.upper()
        >>> spec = TextSpec(name="shout", function=Shout.apply, primal=primal, cases=cases, wrt=("x",))
        >>> verify([spec]).check()
    """

    kind: ClassVar[str] = "text"

    #: What is under test, called as users call it: `Shout.apply`, or a function that calls it.
    function: Callable[..., Any]
    #: What forward computes, in plain Python: it takes the data where `function` takes Variables, and returns the data
    #: of what `function` returns.
    primal: Callable[..., Any]
    #: A generator of representative calls; it gets a `TextMaker`.
    cases: Callable[[TextMaker], Iterator[TextCase]]
    #: A generator of wrong calls and the error that each gets.
    raises: Callable[[TextMaker], Iterator[Misuse]] | None = None
    #: The arguments to which feedback flows; what is said of any other is None.
    wrt: tuple[str, ...]
    #: Whether a backward waits for something, a model say, and so overlaps with others in a concurrent pass.
    io_bound: bool = False
    #: One sentence on what comes out, for the page.
    returns: str = ""
    references: tuple[Reference, ...] = ()
    differences: tuple[Difference, ...] = ()

    def __post_init__(self) -> None:
        check_callable(self, "function", "primal", "cases")
        for name in (*self.wrt, *(argument.name for argument in self.arguments)):
            if name not in self.parameters:
                raise ValueError(
                    f"spec {self.name!r}: {name!r} is not a parameter of primal({', '.join(self.parameters)})"
                )

    @property
    def parameters(self) -> tuple[str, ...]:
        """The argument names of the call, in order, read off `primal`."""
        return tuple(inspect.signature(self.primal).parameters)

    @property
    def implementation(self) -> Any:
        """The Function behind `function`, if that is its `apply`."""
        owner = getattr(self.function, "__self__", None)
        return owner if isinstance(owner, type) else None

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules of `cases` and of the function, the latter only if in the same package."""
        made_of = (self.cases, self.implementation, self.function)
        found = (getattr(part, "__module__", None) or "__main__" for part in made_of if part is not None)
        return tuple(dict.fromkeys(found))

    def invocation(self, case: Case) -> Invocation:
        """Return the call of a case; if the case has feedback, also the backward of what the call returned."""
        behind = self.implementation
        name = f"{behind.__name__}.apply" if behind else getattr(self.function, "__qualname__", self.name)
        made = (name, case.args, case.kwargs)
        variables = {repr(variable): variable for variable in _variables([*case.args, *case.kwargs.values()])}

        def state() -> dict[str, str]:
            return {name: f"{v!r}, version {v.version}, gradient {v.grad!r}" for name, v in variables.items()}

        if not isinstance(case, TextCase) or case.feedback is None:
            return Invocation(
                written=(made,), call=lambda: self.function(*case.args, **case.kwargs), values={}, state=state
            )
        text = _text()
        returned = self.function(*case.args, **case.kwargs)
        outputs = [
            v for v in (returned if isinstance(returned, tuple) else (returned,)) if isinstance(v, text.Variable)
        ]
        said = tuple(None if data is None else text.Variable(data) for data in case.feedback)
        given = [(o, s) for o, s in zip(outputs, said, strict=False) if s is not None]
        return Invocation(
            written=(made, (".backward", tuple(s for _, s in given), {})),
            call=lambda: text.backward([o for o, _ in given], [s for _, s in given]),
            values={},
            state=state,
        )

    def for_(self, function: Callable[..., Any], *, name: str, io_bound: bool | None = None) -> TextSpec:
        """Hold another implementation to the same promise.

        Args:
            function: called as this spec's function is.
            name: its name in the report.
            io_bound: whether its backward waits for something; as this spec's does, unless told.

        Returns:
            A copy of this spec about `function`, without the examples and differences, which are ours.
        """
        waits = self.io_bound if io_bound is None else io_bound
        return replace(self, name=name, function=function, io_bound=waits, documented=(), differences=())


def _variables(value: Any) -> list[Any]:
    if isinstance(value, _text().Variable):
        return [value]
    if isinstance(value, dict | list | tuple):
        return [v for item in (value.values() if isinstance(value, dict) else value) for v in _variables(item)]
    return []


@dataclass(frozen=True, kw_only=True)
class TextEngine:
    """The types and functions that make and run a case on text."""

    #: The class of a leaf: it takes data, a role and `requires_grad`.
    Variable: Callable[..., Any]
    #: From Variables and their gradients, carry these back.
    backward: Callable[..., None]


def hand_over(engine: TextEngine) -> None:
    """Let cases be made and run by an engine: `gradspec.text` calls it when it is imported."""
    _HANDED[:] = [engine]


#: The engine, once it is imported.
_HANDED: list[TextEngine] = []


def _text() -> Any:
    # A spec of a text Function was made of what imports the engine; this room, which the laws on tensors use, does not.
    if not _HANDED:
        raise RuntimeError("a case on text is made of the Variables of gradspec.text: import gradspec.text first")
    return _HANDED[0]


__all__ = ["Argument", "TextCase", "TextMaker", "TextSpec"]
