"""The table of a report in plain text: every verdict is counted in it, and its columns are straight."""

from __future__ import annotations

import pytest

from gradspec import Report
from gradspec.law import Finding, Status, Verdict
from gradspec.render._table import tables


def _report(*verdicts: tuple[str, str, Status]) -> Report:
    found = (
        Verdict(spec=spec, law=law, case=str(place), finding=Finding(status=status), rerun="")
        for place, (spec, law, status) in enumerate(verdicts)
    )
    return Report(provenance={}, sheets={}, laws={}, sources={}, verdicts=tuple(found))


MIXED = _report(
    ("倍", "vjp", Status.HOLDS),
    ("倍", "vjp", Status.BROKEN),
    ("倍", "vjp", Status.HOLDS),
    ("cube", "vjp", Status.HOLDS),
    ("cube", "primal", Status.NOT_PROMISED),
)
SIGNED = """
 law      倍                      cube
 ─────────────────────────────────────────────────
 vjp      ✗ broken 1, ✓ holds 2   ✓ holds 1
 primal                           - not promised 1
"""
ASCII = """
 law      倍                  cube
 -------------------------------------------
 vjp      broken 1, holds 2   holds 1
 primal                       not promised 1
"""


@pytest.mark.parametrize(("signs", "expected"), [(True, SIGNED), (False, ASCII)])
def test_a_table_counts_every_verdict_and_is_straight(signs: bool, expected: str) -> None:
    (table,) = tables(MIXED, signs=signs)
    assert table.splitlines()[1:] == expected.splitlines()[1:]


def test_specs_of_two_kinds_are_in_two_tables() -> None:
    report = _report(("one", "vjp", Status.HOLDS), ("two", "state", Status.HOLDS))
    sheets = {"one": {"kind": "function"}, "two": {"kind": "module"}}
    both = Report(provenance={}, sheets=sheets, laws={}, sources={}, verdicts=report.verdicts)
    assert [table.split()[:2] for table in tables(both)] == [["law", "one"], ["law", "two"]]


def test_no_verdict_is_no_table() -> None:
    assert list(tables(_report())) == []
