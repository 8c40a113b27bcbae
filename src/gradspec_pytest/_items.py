"""The items of a run: one for each spec, law and case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gradspec_pytest._group import Group
from gradspec_pytest._hold import Held
from gradspec_pytest._run import Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradspec._engine._plan import Check
    from gradspec._engine._session import Session
    from gradspec.law import Verdict
    from gradspec.profile import Profile


class SpecCollector(pytest.Collector):
    """The checks of one spec."""

    def __init__(self, *, checks: list[Check], profile: Profile, known: Sequence[Verdict], **rest: Any) -> None:
        super().__init__(**rest)
        self.group = Group(self.run, checks, profile)
        #: The verdicts of a record that are still valid.
        self.known = known
        self.session_of_checks: Session | None = None

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item for each law and case."""
        for check in self.group.checks.values():
            held = Held(group=self.group, check=check)
            yield LawItem.from_parent(self, name=f"{check.law.name}[{check.case}]", held=held)

    def run(self, check: Check) -> Verdict:
        """Return the verdict of a check; one child process serves all items of the spec."""
        from gradspec._engine._session import Session

        if self.session_of_checks is None:
            checks = list(self.group.checks.values())
            self.session_of_checks = Session(checks, self.group.profile, said=self.known)
        return self.session_of_checks.run(check)

    def teardown(self) -> None:
        """End the child process after the last item."""
        if self.session_of_checks is not None:
            self.session_of_checks.close()


class LawItem(pytest.Item):
    """One law, held against one spec on one case."""

    def __init__(self, *, held: Held, **rest: Any) -> None:
        super().__init__(**rest)
        self.held = held

    def runtest(self) -> None:
        """Run the check, and say what the command line would say."""
        self.held()

    def reportinfo(self) -> tuple[Any, int, str]:
        """Return where the item is; it has no line in a file, and a mark that skips needs one."""
        return self.path, 0, self.nodeid


def collectors(session: pytest.Session, targets: list[str]) -> Iterator[SpecCollector]:
    """Yield what collects the items of each spec of the targets."""
    from gradspec._engine._reuse import current
    from gradspec._engine._vacuous import unsettled

    run = Run.of(session.config, targets)
    stands = list(map(unsettled, current(run.known, run.blank, run.checks).values())) if run.known else []
    for _, spec in run.pairs:
        mine = [check for check in run.checks if check.spec is spec]
        known = [verdict for verdict in stands if verdict.spec == spec.name]
        yield SpecCollector.from_parent(
            session, name=spec.name, nodeid=spec.name, checks=mine, profile=run.profile, known=known
        )
