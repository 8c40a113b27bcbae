"""The checks of one spec in a run: what one cause breaks among them is one failure."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gradspec._engine._plan import Check
    from gradspec.law import Verdict
    from gradspec.profile import Profile
    from gradspec.report import Report


class Group:
    """The checks of one spec, in the order of the plan.

    Args:
        run: returns the verdict of a check, which it keeps.
        checks: all of the spec.
        profile: how hard.
    """

    def __init__(self, run: Callable[[Check], Verdict], checks: Sequence[Check], profile: Profile) -> None:
        self.run, self.profile = run, profile
        self.checks = {check.cell: check for check in checks}
        #: The cells whose tests run, in this process or in another worker.
        self.selected: set[tuple[str, str, str]] = set()

    def said_beside_others(self, verdict: Verdict) -> tuple[Verdict, str]:
        """Return a violation in its own words, and why it does not fail its test; empty if it does.

        Of what one cause breaks the first test fails. Which that is, and what follows from what, is found from the
        tests that are selected, whichever process they run in: a worker runs again what it needs to know.
        """
        from gradspec.findings import by_cell, excuse, judge

        before = self._before(verdict)
        others = before + self._roots([verdict, *before])
        judged = by_cell(judge(self._report([*others, verdict])))[verdict.cell]
        mine = {one.cell: one for one in judged.found.verdicts}
        if verdict.cell not in mine or not judged.fails:
            return verdict, excuse(judged, verdict)
        earlier = by_cell(judge(self._report(others)))
        failed = (earlier[one.cell] for one in before if one.cell in mine and earlier[one.cell].fails)
        return mine[verdict.cell], next((excuse(was, verdict) for was in failed), "")

    def of_law(self, law: str) -> int:
        """Return how many checks a law has."""
        return sum(name == law for _, name, _ in self.checks)

    def is_asked(self, verdict: Verdict) -> bool:
        """Whether the run asks about what a verdict says."""
        from gradspec.findings import Bar, is_asked

        return is_asked(verdict, self._report([verdict]), Bar())

    def _before(self, verdict: Verdict) -> list[Verdict]:
        """Return the verdicts of the selected checks that come before that of a verdict."""
        cells = [cell for cell in self.checks if cell in self.selected]
        before = cells[: cells.index(verdict.cell)] if verdict.cell in cells else []
        return [self.run(self.checks[cell]) for cell in before]

    def _roots(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Return from what verdicts follow, where that is selected and not among them."""
        found: dict[tuple[str, str, str], Verdict] = {}
        asked = [*verdicts]
        there = {one.cell for one in verdicts}
        for one in asked:
            root = (one.spec, one.finding.follows, one.case)
            if root in self.selected - there - found.keys():
                found[root] = self.run(self.checks[root])
                asked.append(found[root])
        return [*found.values()]

    def _report(self, verdicts: Iterable[Verdict]) -> Report:
        """Return a report of some verdicts, with what decides if a run asks about them."""
        from gradspec.report import Report

        (supports, *_) = (check.spec.supports for check in self.checks.values())
        name = next(iter(self.checks))[0]
        return Report(
            provenance={"profile": asdict(self.profile)},
            sheets={name: {"supports": {} if supports is None else asdict(supports)}},
            laws={check.law.name: check.law.sheet for check in self.checks.values()},
            sources={},
            verdicts=tuple(verdicts),
        )
