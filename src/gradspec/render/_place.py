"""Where a finding belongs in the source of a repository: the code under test, or else its spec."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradspec._record import Where, where_is

if TYPE_CHECKING:
    from gradspec.report import Report


def place_of_spec(report: Report, spec: str) -> Where | None:
    """Return the line of what a spec is about, or of the spec; None if neither is below the working directory."""
    sheet, source = report.sheets.get(spec, {}), report.sources.get(f"spec {spec}")
    roots = [sheet.get("under_test", ""), *(source.roots if source else ()), sheet.get("path", "")]
    places = (where_is(root) for root in roots if root)
    return next((place for place in places if place is not None and place.is_here), None)
