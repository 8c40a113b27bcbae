"""Every Difference on a page is one that the record of the published implementations shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradspec.functions import FUNCTIONS
from gradspec.law import Status
from gradspec.nn import MODULES
from gradspec.report import Report
from gradspec_lab._summary import read_summary

RECORD = Path(__file__).parents[3] / "docs" / "records" / "peers.json"

differences = pytest.mark.parametrize(
    "difference",
    [
        pytest.param(difference, id=f"{difference.peer}-{difference.law}-{difference.case}")
        for spec in (*FUNCTIONS, *MODULES)
        for difference in spec.differences
    ],
)


@pytest.fixture(scope="module")
def record() -> Report:
    return read_summary(RECORD)


@differences
def test_difference_is_shown_by_the_record(difference: object, record: Report) -> None:
    verdicts = record.of(spec=difference.peer, law=difference.law, case=difference.case)
    assert [verdict.status in (Status.BROKEN, Status.ERROR) for verdict in verdicts] == [True]


def test_each_published_class_that_breaks_a_law_is_in_the_differences_of_a_spec(record: Report) -> None:
    failing = {verdict.spec for verdict in record.verdicts if verdict.status in (Status.BROKEN, Status.ERROR)}
    assert failing == {difference.peer for spec in (*FUNCTIONS, *MODULES) for difference in spec.differences}


def test_no_difference_is_said_twice() -> None:
    named = [(d.peer, d.law, d.case) for spec in (*FUNCTIONS, *MODULES) for d in spec.differences]
    assert sorted(set(named)) == sorted(named)


def test_record_says_what_was_measured(record: Report) -> None:
    assert {"date", "torch", "packages"} <= set(record.provenance)


def test_record_holds_every_published_implementation(record: Report) -> None:
    named = {difference.peer for spec in (*FUNCTIONS, *MODULES) for difference in spec.differences}
    assert named <= set(record.sheets)
    assert set(record.provenance["packages"]) == {"archai", "brails", "espnet", "torchlogix"}


def test_record_carries_no_path_of_the_machine(record: Report) -> None:
    # A path of a traceback, not the address of a page ("https://…") nor a shape ("B/2").
    assert re.findall(r"""(?<=["'\s(])/[\w.-]+/[^"\s]*""", record.to_json()) == []
