"""What follows from a write to an argument or a cotangent: it does not happen where each of these is a copy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.utils._pytree import tree_map

from gradspec._audit._asked import Asked
from gradspec._audit._follows import following
from gradspec._audit._in_place import on_copies
from gradspec._audit._subject import Subject
from gradspec.law import Rank, Status, Verdict
from gradspec.report import Report

#: The laws that a write breaks, and the one that names its line.
ARGUMENTS, COTANGENTS, LINE = "inputs_untouched", "cotangents_untouched", "declared_writes"


def with_writes(report: Report, asked: Asked) -> Report:
    """Return a report in which what holds for copies follows from the write, which has the line."""
    for root, copying in ((ARGUMENTS, _of_arguments), (COTANGENTS, _of_cotangents)):
        broken_by = {v.case: v for v in report.verdicts if v.law == root and _is_wrong(v)}
        others = {v.law for v in report.verdicts if v.case in broken_by and v.law != root and _is_wrong(v)}
        if laws := [law for law in asked.laws if law.name in others]:
            given = [case for case in asked.cases if case.name in broken_by]
            found = asked.again(laws, subject=copying(asked.subject), cases=given)
            held = {cell for cell, verdict in found.items() if verdict.status is Status.HOLDS}
            report = _following(report, root, held)
    return report


def _following(report: Report, root: str, held: set[tuple[str, str]]) -> Report:
    lines = {v.case: v.finding.details["line"] for v in report.verdicts if v.law == LINE and (v.law, v.case) in held}

    def said(verdict: Verdict) -> Verdict:
        if verdict.law == root and verdict.case in lines:
            details = {**verdict.finding.details, "place": lines[verdict.case]}
            return replace(verdict, finding=replace(verdict.finding, details=details))
        why = verdict.finding.reason
        is_of_the_line = (
            why is not None and why.kind == "overwritten" and why.evidence["line"] == lines.get(verdict.case)
        )
        if not _is_wrong(verdict) or not (is_of_the_line or (verdict.law, verdict.case) in held):
            return verdict
        return replace(verdict, finding=following(verdict.finding, root))

    return replace(report, verdicts=tuple(map(said, report.verdicts)))


def _of_arguments(subject: Subject) -> Subject:
    return on_copies(subject, tuple(subject.signature.parameters))


def _of_cotangents(subject: Subject) -> Subject:
    """Return the function whose backward is handed copies of the cotangents."""

    def called(*args: Any, **kwargs: Any) -> Any:
        return tree_map(_with_a_copy, subject.call(*args, **kwargs))

    return replace(subject, call=called)


def _with_a_copy(value: Any) -> Any:
    return _CopiesItsCotangent.apply(value) if isinstance(value, Tensor) and value.requires_grad else value  # type: ignore[no-untyped-call]


class _CopiesItsCotangent(Function):
    """The identity, which hands on a copy of its cotangent."""

    @staticmethod
    def forward(ctx: Any, y: Tensor) -> Tensor:
        return y.view_as(y)

    @staticmethod
    def backward(ctx: Any, y_bar: Tensor) -> Tensor:
        return y_bar.clone(memory_format=torch.contiguous_format)


def _is_wrong(verdict: Verdict) -> bool:
    finding = verdict.finding
    return finding.status is Status.BROKEN and finding.rank != Rank.WASTE and not finding.follows
