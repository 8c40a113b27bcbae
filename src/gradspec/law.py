"""Laws and verdicts: frozen data, and the only list of statuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from gradspec._finding import HOLDS, LIMIT, Finding, Rank, Reason, Status, broken, not_applicable, raised, shown
from gradspec._one_line import name_of
from gradspec._renamed import renamed
from gradspec._scope import Scope
from gradspec.spec import Case, FunctionSpec, Misuse, ModuleCase, ModuleSpec, Spec, TextCase, TextSpec

if TYPE_CHECKING:
    from gradspec.profile import Profile

__all__ = [
    "ALL_KINDS",
    "Over",
    "AnySpec",
    "AnyCase",
    "Status",
    "Rank",
    "Reason",
    "Scope",
    "Finding",
    "HOLDS",
    "LIMIT",
    "broken",
    "shown",
    "raised",
    "not_applicable",
    "TrialOf",
    "Trial",
    "ModuleTrial",
    "TextTrial",
    "AnyTrial",
    "Law",
    "Verdict",
]

#: What a law names as its kinds where it judges a spec of any, also of a kind that does not exist yet.
ALL_KINDS = ("*",)
#: What a law runs over: the calls of the spec, its wrong calls, or its documented objects.
Over: TypeAlias = Literal["cases", "misuses", "documents"]
AnySpec = TypeVar("AnySpec", bound=Spec, covariant=True)
AnyCase = TypeVar("AnyCase", bound=Case, covariant=True)


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
    #: Whether nothing must have run before, the function or autograd: it gets a child process that has run nothing.
    alone: bool = False
    #: What it runs over.
    over: Over = "cases"
    #: The use of a function that it is about.
    scope: Scope = Scope.TRAINING
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

    @property
    def explained_by(self) -> tuple[str, ...]:
        """The laws from whose violation one of this law may follow. Of functions, `vjp` is among them.

        Not of `primal`, on which `vjp` stands: each would follow from the other, and neither say what is wrong.
        """
        names = (*self.requires, *self.implied_by)
        is_of_functions = self.judges("function") or self.judges("operator")
        stands_on_it = is_of_functions and self.name not in ("primal", "vjp")
        return tuple(dict.fromkeys((*names, "vjp"))) if stands_on_it else names

    @property
    def sheet(self) -> dict[str, Any]:
        """The law as plain data, for a report."""
        return {
            "family": self.family,
            "scope": str(self.scope),
            "promise": self.capability or self.refusable_without or "",
            "statement": self.statement,
            "doc": self.doc,
            "cost": self.cost,
            "over": self.over,
            "kinds": list(self.kinds),
            "requires": list(self.requires),
            "explained_by": list(self.explained_by),
        }

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
    """The result of a law for a spec on a case."""

    spec: str
    law: str
    case: str
    finding: Finding
    #: The command that runs only this check.
    rerun: str = ""

    @property
    def cell(self) -> tuple[str, str, str]:
        """The names of spec, law and case."""
        return self.spec, self.law, self.case

    @property
    def status(self) -> Status:
        """The status of the finding."""
        return self.finding.status


def verdict_to_dict(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as a record holds it."""
    flat = asdict(verdict)
    finding = flat.pop("finding")
    if finding["reason"] is None:
        del finding["reason"]
    return {**flat, **finding}


def verdict_from_dict(data: Mapping[str, Any]) -> Verdict:
    """Return the verdict that a record holds."""
    data = {"rerun": data.get("again", ""), **data}  # as it was called until 0.1
    own = ("spec", "law", "case", "rerun")
    finding = {key: value for key, value in data.items() if key not in (*own, "again")}
    finding["status"] = Status(finding["status"])
    if finding.get("reason"):
        finding["reason"] = Reason(**finding["reason"])
    return Verdict(**{key: name_of(data[key]) for key in own}, finding=Finding(**finding))
