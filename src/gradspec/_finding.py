"""Findings and statuses: the frozen data that a check returns."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from gradspec._one_line import one_line, visible_data
from gradspec._place import place_of

#: The key of `Finding.details` under which a finding names the limit that kept the law from being measured: "time".
LIMIT = "limit"
#: The key under which it names what is at fault where nothing could be judged: "spec", "gradspec".
FAULT = "fault"
#: The key under which it names how to say that what was found is meant so.
MEANT = "meant"
#: The key under which a finding names what else differs, beside what it is about.
ALSO = "also"
#: The key under which a finding about some arguments names the others, whose gradient may be meant.
ASIDE = "may be meant"
#: The key under which a finding says that it is no more than float32 rounds, in a call in float64.
SINGLE = "float32"
#: The key under which a question says how many it is, where it is more than one.
QUESTIONS = "questions"
#: The key under which a law that shows nothing says what could be wrong unseen: "gradient of `x`".
UNSEEN = "unseen"
#: The key under which it says of which argument backward computes a gradient that nobody asked for, by its place.
UNASKED = "unasked"


def passing(unseen: str) -> str:
    """Return what would pass unseen, by what `UNSEEN` names: "a zero gradient of `x` would pass"."""
    what = unseen.removesuffix(", swapped")
    return f"a zero {what} would pass" if what == unseen else f"two elements of the {what} could be swapped"


class Status(StrEnum):
    """The possible verdicts of a law. `not checked` never looks like `holds`."""

    #: The law was checked and is satisfied.
    HOLDS = "holds"
    #: The law was checked and is violated.
    BROKEN = "broken"
    #: The gradient is not the derivative of forward, and that may be meant: only the author can say.
    QUESTION = "question"
    #: The law was checked, and its error bar is too wide to tell.
    INCONCLUSIVE = "inconclusive"
    #: The law holds, and would hold for a wrong result too on every case of the spec: nothing was shown.
    VACUOUS = "vacuous"
    #: The law is not expected to hold, for a stated reason.
    WAIVED = "waived"
    #: The law says nothing about this case.
    NOT_APPLICABLE = "not_applicable"
    #: The law could not be checked here, its limit ran out, or a law that it requires ended in an error.
    NOT_MEASURED = "not_measured"
    #: The spec promises no support, and the call was refused with an error.
    REFUSED_AS_DECLARED = "refused_as_declared"
    #: The spec promises neither support nor a refusal, and the call was refused, or torch itself cannot do it.
    NOT_PROMISED = "not_promised"
    #: Nothing could be judged: the case could not be made, or the plain call raised; or a waiver is no
    #: longer needed.
    ERROR = "error"

    @property
    def is_failure(self) -> bool:
        """Whether this is a violation, or could not be judged; a run fails by those that it asks about."""
        return self in (Status.BROKEN, Status.ERROR, Status.INCONCLUSIVE, Status.VACUOUS)


class Rank(StrEnum):
    """How dangerous a violation is, the worst first."""

    #: A value, a gradient, a state or memory is wrong, and nothing says so.
    WRONG = "wrong"
    #: A call that should work raises.
    REFUSED = "refused"
    #: Needless or unsaid: a gradient that nobody asked for, a wait for the device, a smaller promise than could be, a
    #: view that is not declared.
    WASTE = "waste"
    #: This torch does it to a sound function of the same form, too.
    LIMIT = "limit"


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why a result is wrong, as a value: what it is, what shows it, and how that is said."""

    #: What it is, in one or two words: "factor", "exchanged", "mask".
    kind: str
    #: How it is said.
    words: str
    #: What shows it, as plain data: `{"factor": 2.0}`.
    evidence: dict[str, Any] = field(default_factory=dict)
    #: Whether it breaks each law that compares numbers: all findings with it are one.
    of_function: bool = False

    def __post_init__(self) -> None:
        for part in fields(self):
            object.__setattr__(self, part.name, visible_data(getattr(self, part.name)))

    def is_as(self, other: Reason | None) -> bool:
        """Whether another one is of the same kind, with the same evidence to six digits."""
        if other is None or self.kind != other.kind or self.evidence.keys() != other.evidence.keys():
            return False
        return all(_is_near(value, other.evidence[key]) for key, value in self.evidence.items())


def _is_near(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6)
    return bool(one == other)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of one check. A law returns it; `verify` turns it into a `Verdict`."""

    status: Status
    #: One sentence: what was found, or why nothing was checked.
    message: str = ""
    #: What was compared, as "cotangent of `x`, float64[3, 4]".
    argument: str = ""
    #: Where the worst element is, as "[0, 2]".
    index: str = ""
    got: str = ""
    expected: str = ""
    #: The likely cause, in words.
    likely: str = ""
    #: The cause as a value, where a law or an experiment has one; `likely` says it unless told otherwise.
    reason: Reason | None = None
    #: Of a violation, its `Rank`; empty where another law's violation explains it.
    rank: str = ""
    #: The law from whose violation this one follows: with the function's own eager result as the reference it holds.
    follows: str = ""
    #: Further plain data: the output of examples, the message of a refused call.
    details: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # What a function prints or raises must not steer the terminal or the page that shows it.
        for part in fields(self):
            if part.name not in ("status", "reason"):
                object.__setattr__(self, part.name, visible_data(getattr(self, part.name)))
        if self.reason is not None and not self.likely:
            object.__setattr__(self, "likely", self.reason.words)

    def because(self, reason: Reason | None) -> Finding:
        """Return the finding with another cause, or with none."""
        return replace(self, reason=reason, likely="" if reason is None else reason.words)

    @property
    def is_cut_off(self) -> bool:
        """Whether a limit that the user may raise kept it from being measured."""
        return self.status is Status.NOT_MEASURED and LIMIT in self.details

    @property
    def is_fault(self) -> bool:
        """Whether it could not be judged by a fault of the spec or of gradspec, and says nothing of the function."""
        return self.status is Status.ERROR and FAULT in self.details

    @property
    def is_failure(self) -> bool:
        """Whether it is a violation or could not be judged, by its status or because a limit ran out."""
        return self.status.is_failure or self.is_cut_off

    @property
    def is_told(self) -> bool:
        """Whether a report tells it as a finding, as a violation, what could not be judged, and a question."""
        return self.is_failure or self.status is Status.QUESTION


HOLDS = Finding(status=Status.HOLDS)


def broken(message: str, **facts: Any) -> Finding:
    """Return the finding that the law is violated."""
    return Finding(status=Status.BROKEN, message=message, **facts)


def fault(message: str, *, of: str = "spec", likely: str = "", details: Mapping[str, Any] | None = None) -> Finding:
    """Return the finding that nothing can be judged, by a fault of the spec or, as told, of gradspec."""
    return Finding(status=Status.ERROR, message=message, likely=likely, details={FAULT: of, **(details or {})})


def shown(error: BaseException) -> str:
    """Return an error in one line, without what differs from one run or machine to the next."""
    text = re.sub(r"0x[0-9a-f]+", "0x…", one_line(error)).removesuffix(":")
    text = re.sub(r"(?<![\w/:.])(?:/[\w.+-]+)+/", "…/", text)  # a path of this machine, not an address
    return f"{text[:400]}{'…' if len(text) > 400 else ''}"


def raised(error: BaseException, where: str = "", **facts: Any) -> Finding:
    """Return the finding that a call which should work raised an error; `where` names the call."""
    said = shown(error)
    details = {"raised": said} | ({"place": place} if (place := place_of(error)) else {})
    return broken(f"{where} raised {said}".strip(), details=details, **facts)


def not_applicable(why: str) -> Finding:
    """Return the finding that the law says nothing here."""
    return Finding(status=Status.NOT_APPLICABLE, message=why)
