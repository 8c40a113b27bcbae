"""Ask about a wrong gradient that the code names: a row that an argument names, a hook that changes the cotangent."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import torch
from torch.utils.hooks import RemovableHandle

from gradspec._audit._asked import Asked
from gradspec._audit._named_rows import row_without_gradient
from gradspec._place import calling_line
from gradspec.explain import holds_twice
from gradspec.law import Finding, Law, Rank, Status, Trial
from gradspec.laws.tensor.support._meant import ANSWER
from gradspec.report import Report


def with_questions(report: Report, asked: Asked) -> Report:
    """Return a report that asks about what the law `surrogate` calls wrong, where only that is."""
    law = next((law for law in asked.laws if law.name == "surrogate"), None)
    broken = {(v.law, v.case) for v in report.verdicts if v.status is Status.BROKEN and v.finding.rank != Rank.WASTE}
    questions: dict[str, Finding] = {}
    for case in asked.cases:
        if law is None or (law.name, case.name) not in broken:
            continue
        # What clips is no map that a question could be about.
        is_linear = ("cotangent_linearity", case.name) not in broken
        found = asked.apart(lambda: _question(law, asked.trial(case), asked, is_linear=is_linear))  # noqa: B023  # called at once
        if isinstance(found, Finding) and found.status is Status.QUESTION:
            questions[case.name] = found
    verdicts = (
        replace(v, finding=questions[v.case]) if v.law == "surrogate" and v.case in questions else v
        for v in report.verdicts
    )
    return replace(report, verdicts=tuple(verdicts)) if questions else report


def _question(law: Law, trial: Trial, asked: Asked, *, is_linear: bool) -> Finding | None:
    said = row_without_gradient(law, trial, asked.subject) or (_of_a_hook(law, trial) if is_linear else "")
    return Finding(status=Status.QUESTION, message=said, likely=ANSWER) if said else None


def _of_a_hook(law: Law, trial: Trial) -> str:
    """Return what is asked about hooks of tensors, without which backward applies the derivative of forward."""
    with _without_hooks() as lines:
        holds = holds_twice(law, trial)
    if not holds or not lines:
        return ""
    said = f"Is it meant that a hook changes the gradient ({', '.join(lines)})?"
    return f"{said} Without it backward applies the derivative of forward."


@contextmanager
def _without_hooks() -> Iterator[dict[str, None]]:
    """Register no hook of a tensor; yield the lines that do so."""
    lines: dict[str, None] = {}

    def registered(tensor: torch.Tensor, hook: Any) -> RemovableHandle:
        if line := calling_line():
            lines[line] = None
        return RemovableHandle(OrderedDict())

    with patch.object(torch.Tensor, "register_hook", registered):
        yield lines
