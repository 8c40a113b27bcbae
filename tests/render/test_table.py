"""The table of a report in plain text: every verdict is counted in it, and its columns are straight."""

from __future__ import annotations

import pytest

from gradspec import Report
from gradspec.law import Finding, Rank, Status, Verdict
from gradspec.render._table import tables
from gradspec.render._text import summary_lines


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


def test_what_fails_nothing_by_itself_has_a_sign_of_its_own() -> None:
    ranks = (Rank.WRONG, Rank.REFUSED, Rank.WASTE, Rank.LIMIT)
    verdicts = tuple(
        Verdict(spec="cube", law=rank.value, case="one", finding=Finding(status=Status.BROKEN, rank=rank))
        for rank in ranks
    )
    report = Report(provenance={}, sheets={}, laws={}, sources={}, verdicts=verdicts)
    (table,) = tables(report)
    shown = [" ".join(row.split()) for row in table.splitlines()[3:]]
    assert shown == ["wrong ✗ broken 1", "refused ✗ broken 1", "waste △ waste 1", "limit △ limit of torch 1"]
    (said,) = summary_lines(report)
    assert said == "cube on 1 case: 0 laws hold, 2 broken (wrong, refused), 1 waste (waste), 1 limit of torch (limit)"


def test_what_follows_is_counted_apart() -> None:
    findings = {
        "vjp": Finding(status=Status.BROKEN, rank=Rank.WRONG),
        "layout": Finding(status=Status.BROKEN, follows="vjp"),
    }
    verdicts = tuple(Verdict(spec="cube", law=law, case="one", finding=finding) for law, finding in findings.items())
    held = Verdict(spec="cube", law="layout", case="two", finding=Finding(status=Status.HOLDS))
    report = Report(provenance={}, sheets={}, laws={}, sources={}, verdicts=(*verdicts, held))

    assert list(summary_lines(report)) == ["cube on 2 cases: 0 laws hold, 1 broken (vjp), 1 that follow"]


def test_specs_of_two_kinds_are_in_two_tables() -> None:
    report = _report(("one", "vjp", Status.HOLDS), ("two", "state", Status.HOLDS))
    sheets = {"one": {"kind": "function"}, "two": {"kind": "module"}}
    both = Report(provenance={}, sheets=sheets, laws={}, sources={}, verdicts=report.verdicts)
    assert [table.split()[:2] for table in tables(both)] == [["law", "one"], ["law", "two"]]


def test_no_verdict_is_no_table() -> None:
    assert list(tables(_report())) == []
