"""What a law is and what it says: frozen data, and the only list of statuses there is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from gradspec._one_line import one_line, visible_data
from gradspec._renamed import renamed
from gradspec.spec import Case, FunctionSpec, Misuse, ModuleCase, ModuleSpec, Spec, TextCase, TextSpec

if TYPE_CHECKING:
    from gradspec.profile import Profile

#: What a law names as its kinds where it judges a spec of any, also of a kind that does not exist yet.
ALL_KINDS = ("*",)
#: What a law runs over: the calls of the spec, its wrong calls, or its documented objects.
Over: TypeAlias = Literal["cases", "misuses", "documents"]
AnySpec = TypeVar("AnySpec", bound=Spec, covariant=True)
AnyCase = TypeVar("AnyCase", bound=Case, covariant=True)


class Status(StrEnum):
    """What a law can say. `not checked` never looks like `holds`."""

    #: The law was checked and is satisfied.
    HOLDS = "holds"
    #: The law was checked and is violated.
    BROKEN = "broken"
    #: The law was checked, and its error bar is too wide to tell.
    INCONCLUSIVE = "inconclusive"
    #: The law holds, and would hold for a wrong result too on every case of the spec: nothing was shown.
    VACUOUS = "vacuous"
    #: The law is not expected to hold, for a stated reason.
    WAIVED = "waived"
    #: The law says nothing about this case.
    NOT_APPLICABLE = "not_applicable"
    #: The law could not be checked here, or a law that it requires ended in an error.
    NOT_MEASURED = "not_measured"
    #: The spec promises no support, and the call was refused with an error.
    REFUSED_AS_DECLARED = "refused_as_declared"
    #: The spec promises neither support nor a refusal, and the call was refused, or torch itself cannot do it.
    NOT_PROMISED = "not_promised"
    #: Nothing could be judged: the case could not be made, the plain call raised, or no answer came in time; or a
    #: waiver is no longer needed.
    ERROR = "error"

    @property
    def is_failure(self) -> bool:
        """Whether a run that contains this verdict failed."""
        return self in (Status.BROKEN, Status.ERROR, Status.INCONCLUSIVE, Status.VACUOUS)


class Rank(StrEnum):
    """How dangerous a violation is, the worst first."""

    #: A value, a gradient, a state or memory is wrong, and nothing says so.
    WRONG = "wrong"
    #: A call that should work raises.
    REFUSED = "refused"
    #: Needless: a gradient that nobody asked for, a wait for the device, a promise that is smaller than it could be.
    WASTE = "waste"
    #: This torch does it to any function of this form, a sound one too.
    LIMIT = "limit"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one check found. A law returns it; `verify` turns it into a `Verdict`."""

    status: Status
    #: One sentence: what was found, or why nothing was checked.
    message: str = ""
    #: What was compared, as "cotangent of `x`, float64[3, 4]".
    argument: str = ""
    #: Where the worst element is, as "[0, 2]".
    index: str = ""
    got: str = ""
    expected: str = ""
    #: The likely cause.
    likely: str = ""
    #: Of a violation, its `Rank`; empty where another law's violation explains it.
    rank: str = ""
    #: The law from whose violation this one follows: with the function's own eager result as the reference it holds.
    follows: str = ""
    #: Further plain data: the output of examples, the message of a refused call.
    details: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # What a function prints or raises must not steer the terminal or the page that shows it.
        for part in fields(self):
            if part.name != "status":
                object.__setattr__(self, part.name, visible_data(getattr(self, part.name)))


HOLDS = Finding(status=Status.HOLDS)


def broken(message: str, **facts: Any) -> Finding:
    """Return the finding that the law is violated."""
    return Finding(status=Status.BROKEN, message=message, **facts)


def shown(error: BaseException) -> str:
    """Return an error in one line, without what differs from one run or machine to the next."""
    text = re.sub(r"0x[0-9a-f]+", "0x…", one_line(error))
    text = re.sub(r"(?<![\w/:.])(?:/[\w.+-]+)+/", "…/", text)  # a path of this machine, not an address
    return f"{text[:400]}{'…' if len(text) > 400 else ''}"


def raised(error: BaseException, where: str = "", **facts: Any) -> Finding:
    """Return the finding that a call which should work raised an error; `where` names the call."""
    said = shown(error)
    return broken(f"{where} raised {said}".strip(), details={"raised": said}, **facts)


def not_applicable(why: str) -> Finding:
    """Return the finding that the law says nothing here."""
    return Finding(status=Status.NOT_APPLICABLE, message=why)


@dataclass(frozen=True, kw_only=True)
class TrialOf(Generic[AnySpec, AnyCase]):
    """One law's view of one case of a spec of some kind: everything that a check may look at."""

    spec: AnySpec
    #: Copies that this check owns.
    case: AnyCase
    profile: Profile
    seed: int
    #: Set where the law runs over the wrong calls.
    misuse: Misuse | None = None
    #: Makes the same for the other cases of the spec: those that come after this one, then those from the first.
    others: Callable[[], Iterable[TrialOf[AnySpec, AnyCase]]] = tuple


#: What a law of functions looks at.
Trial: TypeAlias = TrialOf[FunctionSpec, Case]
#: What a law of modules looks at.
ModuleTrial: TypeAlias = TrialOf[ModuleSpec, ModuleCase]
#: What a law of text Functions looks at.
TextTrial: TypeAlias = TrialOf[TextSpec, TextCase]
#: What a law of several kinds looks at.
AnyTrial: TypeAlias = TrialOf[Spec, Case]


@renamed(promise="capability")
@dataclass(frozen=True, kw_only=True)
class Law:
    """An equation that every spec of a kind must satisfy."""

    #: The name of its file, and on the command line.
    name: str
    #: values, derivative, transforms, protocol, effects, randomness, inputs, device, operators, modules, text: the
    #: families of the table.
    family: str
    #: The equation, in TeX.
    statement: str
    #: Looks at one case, as a trial of its kinds; returns a finding, raises nothing of its own.
    check: Callable[[Any], Finding]
    #: The law's page: what it says, why it matters, what breaks it, remedy. The docstring of its module.
    doc: str
    #: The kinds of spec that it judges; `ALL_KINDS` where it needs nothing that only some of them have.
    kinds: tuple[str, ...] = ("function", "operator")
    #: What one check costs: `ms` milliseconds, `compile` a compilation, `process` a child process.
    cost: Literal["ms", "compile", "process"] = "ms"
    #: Whether the function must not have been called before: it gets a child process that has run nothing.
    alone: bool = False
    #: What it runs over.
    over: Over = "cases"
    #: Laws without which this one cannot be judged: where one of them ends in an error on a case, it is not measured.
    requires: tuple[str, ...] = ()
    #: Laws that together say what this one says: where one of them is broken, this one is too, and follows from it.
    implied_by: tuple[str, ...] = ()
    #: The field of the spec's `supports` that promises what this law checks.
    capability: str | None = None
    #: The field of `supports` without which an error under this law breaks no promise; a wrong answer does.
    refusable_without: str | None = None
    #: Whether it judges by what only a spec declares; an audit, which has none, leaves it out.
    needs_spec: bool = False
    #: The diseased functions and modules of `gradspec.selftest.specimens` that must break it.
    specimens: tuple[str, ...] = ()

    @property
    def explained_by(self) -> tuple[str, ...]:
        """The laws from whose violation one of this law may follow. Of functions, `vjp` is among them."""
        names = (*self.requires, *self.implied_by)
        is_of_functions = self.judges("function") or self.judges("operator")
        return (*names, "vjp") if is_of_functions and self.name != "vjp" and "vjp" not in names else names

    def judges(self, kind: str) -> bool:
        """Return whether it judges specs of a kind."""
        return self.kinds == ALL_KINDS or kind in self.kinds

    @property
    def judged(self) -> str:
        """The kinds of spec that it judges, in words."""
        return "every kind" if self.kinds == ALL_KINDS else ", ".join(self.kinds)

    def section(self, heading: str) -> str:
        """Return the text under `heading` in the law's page, for example "Remedy"."""
        _, _, rest = self.doc.partition(f"{heading}:")
        return " ".join(rest.split("\n\n")[0].split())


@renamed(again="rerun")
@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a law says of a spec on a case."""

    spec: str
    law: str
    case: str
    finding: Finding
    #: The command that runs only this check.
    rerun: str = ""

    @property
    def status(self) -> Status:
        """The status of the finding."""
        return self.finding.status
