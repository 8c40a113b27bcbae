"""Run a test item: check a law on a case, and fail or skip in the words of the command line."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from gradspec._engine._plan import Check
    from gradspec.law import Verdict
    from gradspec_pytest._group import Group

#: The verdict of the test that runs, and how many its law has on its spec.
LAST: list[tuple[Verdict, int]] = []


@dataclass(frozen=True, kw_only=True, eq=False)
class Held:
    """One check of a group; called, it is the test."""

    group: Group
    check: Check

    def __call__(self) -> None:
        """Run the check; fail, if what is wrong is not shown by another test."""
        from gradspec.law import Status
        from gradspec.render import excused, failure_text, reason

        with pytest.MonkeyPatch.context() as patch:
            # Compiling writes blank debug records by the dozen, and pytest would show them under a failure.
            patch.setattr(logging.getLogger("torch.__trace"), "propagate", False)
            verdict = self.group.run(self.check)
            # A law that nobody asks about may show nothing: its verdicts are never all there.
            is_asked = not verdict.finding.details.get("blind") or self.group.is_asked(verdict)
            LAST.append((verdict, self.group.of_law(verdict.law) if is_asked else 0))
            said, excuse = self.group.said_beside_others(verdict) if verdict.finding.is_told else (verdict, "")
        if excuse:
            pytest.skip(excused(said, excuse))
        if verdict.finding.is_told:
            pytest.fail(failure_text(said), pytrace=False)
        if verdict.status in (Status.NOT_APPLICABLE, Status.NOT_MEASURED):
            pytest.skip(reason(verdict))


def held_by(item: pytest.Item) -> Held | None:
    """Return the check of an item that holds a spec to a law; None of any other item."""
    given = getattr(item, "callspec", None)
    found = [getattr(item, "held", None), *(given.params.values() if given else ())]
    return next((one for one in found if isinstance(one, Held)), None)
