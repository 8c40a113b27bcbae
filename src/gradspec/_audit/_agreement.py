"""Whether a proposed spec, as text, can be imported and says what the audit found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradspec._engine._plan import plan
from gradspec._engine._verify import run_plan
from gradspec.law import Law, Rank, Status, shown
from gradspec.laws import LAWS
from gradspec.profile import Profile
from gradspec.report import Report
from gradspec.spec import FunctionSpec

#: What an audit cannot ask, and every spec must keep.
_KEPT = ("primal", "vjp")
#: What an audit finds of a gradient that is meant to be another one; a spec that names it has no such violation.
_MEANT = ("surrogate",)


def disagreement(
    text: str, scope: Mapping[str, Any], constant: str, report: Report, laws: Sequence[Law], profile: Profile, seed: int
) -> str:
    """Return how a spec differs from the audit; nothing where it agrees. It runs the text: call it in a child process.

    The laws that compile are left out, which take as long as the audit.

    Args:
        text: the module of the spec.
        scope: what it finds without an import: the function, where it has no import path.
        constant: the name of the spec in it.
        report: what the audit found.
        laws: the laws that the audit asked.
        profile: how hard.
        seed: of the tensors and directions.
    """
    if why := imports(text, scope, constant):
        return why
    spec = _run(text, scope)[constant]
    asked = [law for law in laws if law.cost != "compile"]
    every = [*(law for law in LAWS if law.name in _KEPT and law not in asked), *asked]
    # Nobody keeps this report.
    found = _failures(
        run_plan(plan([spec], every, profile, seed=seed), [spec], every, profile, seed=seed, isolate=False)
    )
    names = {law.name for law in asked}
    before = {cell for cell in _failures(report) if cell[0] in names}
    for law, case in sorted(found - before):
        return f"`{law}` fails on case {case!r}"
    for law, case in sorted(before - found):
        if law not in _MEANT:
            return f"`{law}` holds on case {case!r}"
    return ""


def imports(text: str, scope: Mapping[str, Any], constant: str) -> str:
    """Return why the text of a spec cannot be imported; nothing where it can. It runs the text."""
    try:
        spec = _run(text, scope)[constant]
    except Exception as error:
        return f"it raises {shown(error)}"
    return "" if isinstance(spec, FunctionSpec) else f"{constant} is not a spec"


def _run(text: str, scope: Mapping[str, Any]) -> dict[str, Any]:
    module: dict[str, Any] = {**scope, "__name__": "__proposal__"}
    exec(compile(text, "<proposal>", "exec"), module)
    return module


def _failures(report: Report) -> set[tuple[str, str]]:
    failed = (v for v in report.verdicts if v.status in (Status.BROKEN, Status.ERROR))
    return {(v.law, v.case) for v in failed if v.finding.rank not in (Rank.WASTE, Rank.LIMIT)}
