"""What an audit was asked, and what plain calls have shown: where its experiments begin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from gradspec._audit._apart import apart
from gradspec._audit._eager_spec import eager_spec
from gradspec._audit._measured import Measured
from gradspec._audit._subject import Subject
from gradspec._audit._trials import flat_trial
from gradspec._engine._plan import plan
from gradspec._engine._verify import run_plan
from gradspec.law import Finding, Law, Trial, Verdict
from gradspec.profile import Profile
from gradspec.spec import Case

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """An audit, behind its laws."""

    subject: Subject
    #: Its calls, those of a module with its state.
    cases: tuple[Case, ...]
    #: What plain calls show.
    measured: Measured
    laws: Sequence[Law]
    profile: Profile
    seed: int

    def trial(self, case: Case) -> Trial:
        """Return a call with one name an argument."""
        return flat_trial(self.subject, case, self.measured, self.profile, self.seed)

    def apart(self, call: Callable[[], T]) -> T | Finding:
        """Return what a call gives in a child process, or what is said of one that ends."""
        return apart(call, self.profile, self.seed)

    def again(
        self, laws: Sequence[Law], *, subject: Subject | None = None, cases: Sequence[Case] | None = None
    ) -> dict[tuple[str, str], Verdict]:
        """Return what laws say of the function, or of another one in its place, by law and case."""
        spec = eager_spec(subject or self.subject, self.cases if cases is None else tuple(cases), self.measured)
        checks = plan([spec], laws, self.profile, seed=self.seed)
        report = run_plan(checks, [spec], laws, self.profile, seed=self.seed)
        return {(verdict.law, verdict.case): verdict for verdict in report.verdicts}
