"""Render the remarks of an audit, which are not findings but are in every format."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradspec.report import Report


def remarks_of(report: Report, spec: str) -> tuple[str, ...]:
    """Return what an audit saw of a function beside the verdicts, a sentence or two each."""
    return tuple(map(str, report.sheets.get(spec, {}).get("remarks", ())))


def remarks(report: Report) -> tuple[tuple[str, str], ...]:
    """Return all of them, each with the name of its function."""
    return tuple((spec, remark) for spec in report.sheets for remark in remarks_of(report, spec))
