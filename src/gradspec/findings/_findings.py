"""Group the violations of a report: one finding for each edit that mends it, the most dangerous first."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gradspec.law import Rank, Scope, Status, Verdict

if TYPE_CHECKING:
    from gradspec.report import Report

#: The most dangerous first. What could not be judged comes behind what is wrong, and before what is refused.
ORDER = (
    Rank.WRONG,
    Status.ERROR,
    Status.NOT_MEASURED,  # a limit ran out
    Status.VACUOUS,
    Status.INCONCLUSIVE,
    Rank.REFUSED,
    Rank.WASTE,
    Rank.LIMIT,
    Status.QUESTION,
)
#: The laws that call a function in other dtypes than the case: of one rank, what is wrong in its own comes first.
_OTHER_DTYPES = ("precision", "autocast")
_WORDS = {
    Rank.WRONG: "wrong silently",
    Rank.REFUSED: "refused with an error",
    Rank.WASTE: "waste",
    Rank.LIMIT: "a limit of torch",
    Status.ERROR: "could not be judged",
    Status.NOT_MEASURED: "a limit ran out",
    Status.VACUOUS: "shows nothing",
    Status.INCONCLUSIVE: "cannot tell",
    Status.QUESTION: "a question",
}


@dataclass
class Found:
    """One cause in one spec, and all that it breaks."""

    #: The verdict that shows it best.
    verdict: Verdict
    #: Every verdict that is a violation of this cause.
    verdicts: list[Verdict] = field(default_factory=list)
    #: The verdicts of what is violated as a consequence, and holds where the cause is mended.
    followers: list[Verdict] = field(default_factory=list)

    @property
    def rank(self) -> Rank | Status:
        """How dangerous it is; the status, where that is not broken."""
        return rank_of(self.verdict)

    @property
    def is_shown_on_all_cases(self) -> bool:
        """Whether the cause of the verdict that shows it best is said of its other cases, too."""
        mine = [verdict for verdict in self.verdicts if verdict.law == self.verdict.law]
        return len({verdict.finding.likely for verdict in mine}) < 2

    @property
    def laws(self) -> list[str]:
        """The laws of its verdicts."""
        return list(dict.fromkeys(verdict.law for verdict in self.verdicts))

    @property
    def follows(self) -> list[str]:
        """The laws of its followers."""
        return list(dict.fromkeys(verdict.law for verdict in self.followers))

    @property
    def cases(self) -> list[str]:
        """The cases of its verdicts."""
        return list(dict.fromkeys(verdict.case for verdict in self.verdicts))


def rank_of(verdict: Verdict) -> Rank | Status:
    """Return the rank of a violation; the status of what failed otherwise."""
    if verdict.status is not Status.BROKEN:
        return verdict.status
    if verdict.finding.rank:
        return Rank(verdict.finding.rank)
    return Rank.REFUSED if "raised" in verdict.finding.details else Rank.WRONG


def standing(verdict: Verdict) -> Status | Rank:
    """Return what a table shows of a verdict: its status, or of what fails nothing unless asked to, its rank."""
    rank = rank_of(verdict)
    return rank if rank in (Rank.WASTE, Rank.LIMIT) else verdict.status


def rank_words(rank: Rank | Status) -> str:
    """Return a rank as a reader says it: "wrong silently"."""
    return _WORDS.get(rank, rank.value)


def scope_of(law: str, laws: Mapping[str, Any]) -> Scope:
    """Return the use of a function that a law is about; a record that is older than the scopes says none."""
    return Scope(laws.get(law, {}).get("scope", Scope.TRAINING))


def findings(report: Report) -> list[Found]:
    """Return what failed or is asked, a cause at a time: by spec, the worst first; of one rank, training first.

    What follows from a law that does not fail in this report, as one that was not asked for, is a finding of its own.
    """
    found: dict[tuple[str, str], Found] = {}
    of_law: dict[tuple[str, str], Found] = {}
    ran = {(verdict.spec, verdict.law) for verdict in report.verdicts}
    place = {law: number for number, law in enumerate(report.laws)}
    for verdict in _roots_first(report.violations):
        key = (verdict.spec, _cause(verdict))
        root = of_law.get((verdict.spec, verdict.finding.follows))
        if root is not None:
            root.followers.append(verdict)
            of_law.setdefault((verdict.spec, verdict.law), root)  # what follows from it follows from the root
            continue
        verdict = _said_in_full(verdict, ran)
        mine = found.setdefault(key, Found(verdict))
        mine.verdicts.append(verdict)
        if _says_more(verdict, mine.verdict):
            mine.verdict = verdict
        of_law.setdefault((verdict.spec, verdict.law), mine)
    specs = {verdict.spec: number for number, verdict in reversed(list(enumerate(report.verdicts)))}
    return sorted(
        found.values(),
        key=lambda f: (
            specs[f.verdict.spec],
            ORDER.index(f.rank),
            not _is_of_function(f.verdict),  # with it nothing else can be told
            "lost" not in f.verdict.finding.details,  # nothing is trained by a gradient that does not arrive
            f.verdict.law == "examples",  # it shows what another law says the cause of
            f.verdict.law in _OTHER_DTYPES,
            # A mistake that training shows is one in what torch makes of the function, too.
            scope_of(f.verdict.law, report.laws) is not Scope.TRAINING,
            place.get(f.verdict.law, 0),
        ),
    )


def _said_in_full(verdict: Verdict, ran: Container[tuple[str, str]]) -> Verdict:
    """Return a verdict that follows from one that is not here, with what its own law found.

    A law that has run and did not fail shows nothing, and is not named.
    """
    found = verdict.finding.details.get("found")
    if not verdict.finding.follows or not found:
        return verdict
    said = found if (verdict.spec, verdict.finding.follows) in ran else f"{found} (this {verdict.finding.message})"
    return replace(verdict, finding=replace(verdict.finding, message=said))


def _says_more(one: Verdict, other: Verdict) -> bool:
    """Whether a verdict shows a cause better: the more dangerous one; of vacuous laws, `vjp` says most."""
    if one.status is Status.VACUOUS:
        return one.law == "vjp" != other.law
    return ORDER.index(rank_of(one)) < ORDER.index(rank_of(other))


def _roots_first(verdicts: Iterable[Verdict]) -> list[Verdict]:
    return sorted(verdicts, key=lambda verdict: bool(verdict.finding.follows))


def _is_of_function(verdict: Verdict) -> bool:
    return verdict.finding.reason is not None and verdict.finding.reason.of_function


def _cause(verdict: Verdict) -> str:
    finding = verdict.finding
    if finding.details.get("lacks"):
        return "form"
    if finding.reason is not None and _is_of_function(verdict):
        return finding.reason.kind
    if finding.reason is not None and "line" in finding.reason.evidence:
        return f"{finding.reason.kind} in {finding.reason.evidence['line']}"
    if finding.rank == Rank.LIMIT:
        return "limit"
    if verdict.finding.is_cut_off:
        return "cut off"
    if verdict.status is Status.ERROR:
        return f"error {finding.message}"
    if verdict.status is Status.VACUOUS:
        return "vacuous"
    # A call that raises is mended by another edit than one that gives other numbers.
    return f"law {verdict.law}{', raises' if 'raised' in finding.details else ''}"
