"""The page how-far-you-can-trust-this.md counts what the records hold today."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.makers import MAKERS
from gradspec._record import RecordError, read_experiment, update_experiment
from gradspec_lab.evidence.trust_record import RECORDS, STRANGERS, counted, strangers_rows


def test_that_the_counts_are_those_of_the_records() -> None:
    kept = read_experiment(RECORDS / "trust.json")["counts"]
    assert kept == counted(), "a record has moved on: run python -m gradspec_lab.evidence.trust_record"


def test_that_a_row_that_does_not_hold_as_many_findings_as_it_says_is_refused(tmp_path: Path) -> None:
    record = read_experiment(STRANGERS / "record.json")
    first = record["rows"][0]
    update_experiment({**record, "rows": [{**first, "laws": [*first["laws"], "vjp: waste"]}]}, tmp_path / "record.json")
    with pytest.raises(RecordError, match=f"{first['file']} has {first['findings'] + 1} findings, and says"):
        strangers_rows(tmp_path / "record.json")


def test_that_the_search_found_no_discrepancy_and_is_of_every_function_that_it_can_call() -> None:
    from gradspec.functions import FUNCTIONS

    fuzz = read_experiment(RECORDS / "fuzz.json")
    assert [row["name"] for row in fuzz["functions"]] == [spec.name for spec in FUNCTIONS if spec.name in MAKERS]
    assert (fuzz["discrepancies"], fuzz["graphs"]["discrepancies"]) == (0, [])
    assert fuzz["examples"] == sum(sum(row["by_composition"].values()) for row in fuzz["functions"])
