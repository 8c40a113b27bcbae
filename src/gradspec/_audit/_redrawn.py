"""Whether a gradient is wrong because backward draws the noise of forward anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gradspec._engine._plan import plan
from gradspec._engine._verify import run_plan
from gradspec.law import Law, Status
from gradspec.profile import Profile
from gradspec.report import Report
from gradspec.spec import FunctionSpec

REDRAWN = (
    "backward draws its noise anew, and the gradient is right where it draws the same: keep the mask or noise of "
    "forward; or meant so, as in Shake-Shake: then name the surrogate, by --surrogate or in a spec"
)


def redrawn(
    report: Report, alike: Callable[[], FunctionSpec], laws: tuple[Law, ...], profile: Profile, seed: int
) -> Report:
    """Return a report in which a broken law `surrogate` has that cause, where another run shows it.

    Args:
        report: of a function whose forward and backward draw.
        alike: gives the spec of the same function, of which backward draws the numbers of forward.
        laws: the laws of the report.
        profile: how hard.
        seed: of the run.
    """
    broken = {v.case for v in report.violations if v.law == "surrogate" and v.status is Status.BROKEN}
    if not broken:
        return report
    asked = [law for law in laws if law.name == "surrogate"]
    spec = alike()
    again = run_plan(plan([spec], asked, profile, seed=seed), [spec], asked, profile, seed=seed)
    right = {v.case for v in again.verdicts if v.status is Status.HOLDS}
    verdicts = (
        replace(v, finding=replace(v.finding, likely=REDRAWN))
        if v.law == "surrogate" and v.case in broken & right
        else v
        for v in report.verdicts
    )
    return replace(report, verdicts=tuple(verdicts))
