"""The fields that specs of every kind share, as frozen data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from gradspec.spec._calls import name_of_call
from gradspec.spec._fields import check_fields
from gradspec.spec._forms import forms
from gradspec.spec._words import check_words

if TYPE_CHECKING:
    from torch import Tensor, dtype

    from gradspec.spec._invocation import Invocation


class Make(Protocol):
    """Draws the tensors of a case: seeded, on the device of the run, with numbers short enough to read."""

    def __call__(
        self, *shape: int, dtype: dtype | None = None, low: float | None = None, high: float | None = None
    ) -> Tensor:
        """Return a new tensor of `shape`: float64 unless told, normal, or uniform from `low` to `high`."""
        ...


@dataclass(frozen=True, kw_only=True, init=False)
class Case:
    """One representative call, as it is made: `Case(x, 0.5)` for `function(x, 0.5)`.

    A keyword argument of the call is one of the case too: `Case(x, dim=1)`. One that is called `name`, `args` or
    `kwargs` goes into `kwargs={"name": ...}`. Or give the fields by name: `Case(name="half", args=(x, 0.5))`.

    Args:
        name (str): Unique in its spec, in words: it is the name on the command line and in the tables.
        args (tuple of Any): The positional arguments, tensors included.
        kwargs (Mapping, optional): The keyword arguments.

    Raises:
        TypeError: it is neither form.

    Example:
        >>> from gradspec import Case
        >>> Case([1.0], 0.5, dim=1).name
        '[1.0], 0.5, dim=1'
        >>> Case([1.0], 0.5, name="half") == Case(name="half", args=([1.0], 0.5))
        True
    """

    #: Unique in its spec, in words: it is the name on the command line and in the tables. Left out, it is made of the
    #: arguments.
    name: str
    #: The positional arguments, tensors included. A law works on copies.
    args: tuple[Any, ...]
    #: The keyword arguments.
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __init__(
        self,
        *arguments: Any,
        name: str | None = None,
        args: tuple[Any, ...] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        **keywords: Any,
    ) -> None:
        if (arguments and args is not None) or (keywords and not arguments):
            given = f"an argument {next(iter(keywords))!r}" if keywords else "positional arguments and args"
            raise TypeError(f"a case is given {given}: write Case(x, 0.5), or Case(name='half', args=(x, 0.5))")
        if len(arguments) == 2 and isinstance(arguments[0], str) and isinstance(arguments[1], tuple):
            first = arguments[0]
            raise TypeError(
                f"Case({first!r}, (...)): write Case(..., name={first!r}), or Case(name={first!r}, args=(...))"
            )
        call = arguments if args is None else args
        if kwargs is not None and not isinstance(kwargs, Mapping):
            raise TypeError(f"kwargs of a case is {kwargs!r}, expected a dict: write kwargs={{'dim': 1}}")
        named = {**(kwargs or {}), **keywords}
        is_call = isinstance(call, tuple)
        object.__setattr__(self, "name", name_of_call(call, named) if name is None and is_call else name)
        object.__setattr__(self, "args", call)
        object.__setattr__(self, "kwargs", named if kwargs is None or keywords else kwargs)
        self.__post_init__()

    def __post_init__(self) -> None:
        if self.name is not None and not isinstance(self.name, str):
            raise TypeError(f"the name of a case is {self.name!r}, expected text")
        if not isinstance(self.args, tuple):
            kind, name = type(self.args).__name__, "" if self.name is None else f" {self.name!r}"
            raise TypeError(f"case{name}: args is a {kind}, expected a tuple: write args=(x,) for one argument")


@dataclass(frozen=True, kw_only=True)
class Misuse:
    """A documented wrong call, and the error that it gets."""

    #: The wrong call.
    case: Case
    #: The class of the error.
    error: type[Exception]
    #: A regular expression that the message matches.
    match: str
    #: What is called, of the documented objects; None: what the spec is about.
    call: Callable[..., Any] | None = None


@forms("Argument(name='x', type='Tensor', text='...')")
@dataclass(frozen=True, kw_only=True)
class Argument:
    """What a page says of one argument, and what `gradspec check` holds the cases and wrong calls of the spec to.

    Raises:
        ValueError: a shape, dtype or range is not written in the words that are known.
    """

    #: As in the call.
    name: str
    #: The type, as a reader writes it.
    type: str
    #: "any", sizes such as "(B, D)", "(2,)" or "(B, ...)", "same as x", "broadcasts to x"; empty: nothing is said.
    shape: str = ""
    #: "floating", "complex", "integer", "bool", "real", "any", a dtype of torch such as "int64", "same as x", "same as
    #: the module", or several with " or " between them; empty: nothing is said.
    dtype: str = ""
    #: "x > 0", "0 <= x <= 1", "0 <= x < N" for a size N of a shape, "0 <= x[1] <= 1" for an element; ", not checked" at
    #: the end where a call beyond is not refused; empty: nothing is said.
    range: str = ""
    #: Whether a gradient flows to it.
    gradient: bool = False
    #: One or two sentences, the unit among them where there is one.
    text: str

    def __post_init__(self) -> None:
        check_words(self.name, self.shape, self.dtype, self.range)


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


@forms("Reference(text='...')")
@dataclass(frozen=True, kw_only=True)
class Reference:
    """Where a definition comes from."""

    #: Authors, title, year, and the equation or section.
    text: str
    #: A stable address; empty if there is none.
    url: str = ""


@forms("Waiver(law='vjp', case='a matrix', reason='...')")
@dataclass(frozen=True, kw_only=True)
class Waiver:
    """A law that is not expected to hold on a case. If it holds all the same, the waiver is an error."""

    #: The law's name.
    law: str
    #: The case on which it does not hold.
    case: str
    #: Why it does not hold, and why that is accepted: one sentence.
    reason: str


@dataclass(frozen=True, kw_only=True)
class Spec:
    """The fields of every spec, whatever its kind. The kinds are listed in `gradspec.spec._kinds`."""

    #: The kind of what is under test; a law names the kinds that it judges.
    kind: ClassVar[str]

    #: Unique in a report.
    name: str
    #: A generator of representative calls; it gets what makes their arguments, `Make` where they are tensors.
    cases: Callable[[Any], Iterator[Case]]
    #: A generator of wrong calls and the error that each gets.
    raises: Callable[[Any], Iterator[Misuse]] | None = None
    #: One sentence that a user could search for; left out, the first of the docstring of what is documented.
    summary: str = ""
    #: The arguments of the call, for the page.
    arguments: tuple[Argument, ...] = ()
    #: The objects whose docstrings carry the examples that the law `examples` runs.
    documented: tuple[Any, ...] = ()
    #: Moves when the promise changes.
    version: int = 1
    #: What is promised where a spec may also promise no support: a frozen value of booleans, or None.
    supports: Any = None
    #: Laws that are not expected to hold on a case, each with the reason.
    waivers: tuple[Waiver, ...] = ()
    #: Where the definitions come from.
    references: tuple[Reference, ...] = ()
    #: How published implementations behave otherwise.
    differences: tuple[Difference, ...] = ()

    @property
    def modules(self) -> tuple[str, ...]:
        """Return the names of the Python modules whose source the promise is measured for, its own before others."""
        raise NotImplementedError

    def invocation(self, case: Case) -> Invocation:
        """Return the call of a case, ready to be made as a user makes it."""
        raise NotImplementedError

    @property
    def headline(self) -> str:
        """Return the summary, or the first words of the docstring of what is documented."""
        doc = inspect.getdoc(self.documented[0]) if self.documented and not self.summary else ""
        return self.summary or first_words(doc or "")

    @property
    def described_arguments(self) -> tuple[Argument, ...]:
        """Return the described arguments of all calls that a case represents."""
        return self.arguments

    def named(self, case: Case) -> Mapping[str, Any]:
        """Return the values of a case by the names of its arguments; none where they cannot be told."""
        return {}


def first_words(doc: str) -> str:
    """Return the first paragraph of a docstring in one line."""
    return " ".join(doc.strip().split("\n\n")[0].split())


def check_names(spec: Spec, *roles: str) -> None:
    """Refuse a spec with a text where several names are meant, with what is no name, or with one twice.

    Raises:
        ValueError: there is one.
    """
    for role in roles:
        given = getattr(spec, role)
        if isinstance(given, str):
            raise ValueError(f"spec {spec.name!r}: {role} is the text {given!r}: write a tuple, as ({given!r},)")
        for name in given or ():
            if not isinstance(name, str):
                raise ValueError(f"spec {spec.name!r}: {role} has {name!r}, and names are texts: write ('x',)")
            if list(given).count(name) > 1:
                raise ValueError(f"spec {spec.name!r}: {role} has {name!r} twice")


def check_common(spec: Spec) -> None:
    """Refuse a spec whose common fields are not what they are for.

    Raises:
        ValueError: there is one.
    """
    check_fields(
        spec,
        f"spec {spec.name!r}",
        name=str,
        summary=str,
        version=int,
        arguments=(Argument,),
        waivers=(Waiver,),
        references=(Reference,),
        differences=(Difference,),
    )


def check_callable(spec: Spec, *roles: str) -> None:
    """Refuse a spec with a field that cannot be called.

    Raises:
        ValueError: there is one.
    """
    for role in roles:
        if not callable(getattr(spec, role)):
            raise ValueError(f"spec {spec.name!r}: {role} is {getattr(spec, role)!r}, which cannot be called")
