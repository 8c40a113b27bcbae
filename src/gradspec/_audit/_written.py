"""The proposal of an audit: the text of a spec that says what was found, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch.nn import Module

from gradspec._audit._agreement import disagreement
from gradspec._audit._apart import apart
from gradspec._audit._case_text import name_in_text
from gradspec._audit._known_forms import guessed
from gradspec._audit._measured import Measured
from gradspec._audit._proposal import Proposal
from gradspec.law import Finding, Law
from gradspec.profile import Profile
from gradspec.report import Report
from gradspec.spec._maker import Maker


def unwritable(function: Any, measured: Measured, path: str) -> str:
    """Return why no spec of a function, as it was named on the command line, can be written; nothing where it can."""
    file = Path(path.rpartition(":")[0])
    if file.suffix == ".py" and not file.stem.isidentifier():
        return f"a spec would import {file.stem!r}, which is no name of a module: rename the file"
    if isinstance(function, Module):
        return "a module is promised by a `ModuleSpec`"
    if measured.hidden:
        return "a spec would promise that no gradient reaches the tensors in the list"
    if measured.nested:
        return "a spec is of a function that returns a tensor, or a tuple of them"
    return "" if measured.is_repeatable else "a spec is of a function whose calls agree"


def agreeing(
    proposal: Proposal, function: Any, laws: Sequence[Law], profile: Profile, seed: int
) -> tuple[str, tuple[str, ...]]:
    """Return the text of a spec that was checked to say what the audit found, with named forms where they agree."""
    forms = apart(lambda: guessed(proposal.spec), profile, seed)
    scope = {} if proposal.path else {proposal.target.partition(".")[0]: function}
    why, report = "", _as_in_text(proposal)
    for guess in dict.fromkeys(((None, None) if isinstance(forms, Finding) else forms, (None, None))):
        text = proposal.text(guess)
        asked = (text, scope, proposal.constant, report, laws, profile, seed)
        found = apart(lambda asked=asked: disagreement(*asked), profile, seed)  # type: ignore[misc]  # of this round
        why = found.message if isinstance(found, Finding) else found
        if not why:
            return text, ()
    return "", (f"No spec is proposed: {why}.",)


def _as_in_text(proposal: Proposal) -> Report:
    """Return the report with the names of the cases that the text gives them."""
    cases = proposal.spec.cases(Maker(0, "cpu"))
    names = {case.name: name_in_text(case, proposal.written, proposal.dtype) for case in cases}
    verdicts = tuple(replace(v, case=names.get(v.case, v.case)) for v in proposal.report.verdicts)
    return replace(proposal.report, verdicts=verdicts)
