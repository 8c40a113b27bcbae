"""The page how-far-you-can-trust-this.md counts what the records hold today."""

from __future__ import annotations

from fuzz.makers import MAKERS
from gradspec._record import read_experiment
from trust_record import RECORDS, counted


def test_that_the_counts_are_those_of_the_records() -> None:
    kept = read_experiment(RECORDS / "trust.json")["counts"]
    assert kept == counted(), "a record has moved on: run python tools/trust_record.py"


def test_that_the_search_found_no_discrepancy_and_is_of_every_function_that_it_can_call() -> None:
    from gradspec.functions import FUNCTIONS

    fuzz = read_experiment(RECORDS / "fuzz.json")
    assert [row["name"] for row in fuzz["functions"]] == [spec.name for spec in FUNCTIONS if spec.name in MAKERS]
    assert (fuzz["discrepancies"], fuzz["graphs"]["discrepancies"]) == (0, [])
    assert fuzz["examples"] == sum(sum(row["by_composition"].values()) for row in fuzz["functions"])
