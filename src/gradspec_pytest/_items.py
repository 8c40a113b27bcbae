"""The items of a run: one for each spec, law and case."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest

from gradspec_pytest._run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gradspec._engine._plan import Check
    from gradspec._engine._session import Session
    from gradspec.law import Verdict
    from gradspec.profile import Profile
    from gradspec.report import Report


class SpecCollector(pytest.Collector):
    """The checks of one spec."""

    def __init__(self, *, checks: list[Check], profile: Profile, known: Sequence[Verdict], **rest: Any) -> None:
        super().__init__(**rest)
        self.checks = checks
        #: How many checks each law has.
        self.of_law = Counter(check.law.name for check in checks)
        self.profile = profile
        #: The verdicts of a record that are still valid.
        self.known = known
        self.session_of_checks: Session | None = None

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item for each law and case."""
        for check in self.checks:
            yield LawItem.from_parent(self, name=f"{check.law.name}[{check.case}]", check=check)

    def run(self, check: Check) -> Verdict:
        """Return the verdict of a check; one child process serves all items of the spec."""
        from gradspec._engine._session import Session

        if self.session_of_checks is None:
            self.session_of_checks = Session(self.checks, self.profile, said=self.known)
        return self.session_of_checks.run(check)

    def teardown(self) -> None:
        """End the child process after the last item."""
        if self.session_of_checks is not None:
            self.session_of_checks.close()


class LawItem(pytest.Item):
    """One law, held against one spec on one case."""

    parent: SpecCollector

    def __init__(self, *, check: Check, **rest: Any) -> None:
        super().__init__(**rest)
        self.check = check

    def runtest(self) -> None:
        """Run the check, and say what the command line would say."""
        hold(self.parent.run, self.check, self.parent.of_law[self.check.law.name], self.parent.profile)

    def reportinfo(self) -> tuple[Any, None, str]:
        """Return where the item is; it has no line in a file."""
        return self.path, None, self.nodeid


#: The verdict of the test that runs, and how many its law has on its spec.
LAST: list[tuple[Verdict, int]] = []


def hold(run: Callable[[Check], Verdict], check: Check, of: int, profile: Profile) -> None:
    """Run a check, one of so many of its law on its spec, and fail or skip in the words of the command line."""
    from gradspec.law import Status
    from gradspec.render import failure_text, reason

    with pytest.MonkeyPatch.context() as patch:
        # Compiling writes blank debug records by the dozen, and pytest would show them under a failure.
        patch.setattr(logging.getLogger("torch.__trace"), "propagate", False)
        verdict = run(check)
    # A law that nobody asks about may show nothing: its verdicts are never all there.
    LAST.append((verdict, of if _is_asked(verdict, check, profile) else 0))
    if verdict.finding.is_told:
        if excuse := excuse_of(verdict, check, profile):
            pytest.skip(f"{excuse}: {reason(verdict)}")
        pytest.fail(failure_text(verdict), pytrace=False)
    if verdict.status in (Status.NOT_APPLICABLE, Status.NOT_MEASURED):
        pytest.skip(reason(verdict))


def excuse_of(verdict: Verdict, check: Check, profile: Profile) -> str:
    """Return why a finding does not fail its test; empty if it does."""
    from gradspec.findings import judge

    (judged,) = judge(_alone(verdict, check, profile)).findings
    if judged.fails:
        return ""
    if not judged.is_asked:
        return "not asked about"
    return "a question" if judged.is_question else "not dangerous enough to fail"


def _is_asked(verdict: Verdict, check: Check, profile: Profile) -> bool:
    from gradspec.findings import Bar, is_asked

    return not verdict.finding.details.get("blind") or is_asked(verdict, _alone(verdict, check, profile), Bar())


def _alone(verdict: Verdict, check: Check, profile: Profile) -> Report:
    """Return a report of one verdict, with what decides if a run asks about it."""
    from gradspec.report import Report

    supports = check.spec.supports
    return Report(
        provenance={"profile": asdict(profile)},
        sheets={verdict.spec: {"supports": {} if supports is None else asdict(supports)}},
        laws={verdict.law: check.law.sheet},
        sources={},
        verdicts=(verdict,),
    )


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
