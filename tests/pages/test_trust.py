"""The page how-far-you-can-trust-this.md counts what the records hold today."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.makers import MAKERS
from gradspec._record import RecordError, read_experiment, update_experiment
from gradspec_lab.evidence.counts import RECORDS, STRANGERS, counted, strangers_rows


def test_that_the_counts_are_of_all_records_and_of_more_than_one_status() -> None:
    found = counted()
    assert found["records"] == len(list(RECORDS.rglob("*.json")))
    assert found["published"]["peer_cells"] == sum(found["published"]["peer_verdicts"].values())
    assert found["kills"]["mutants"] == found["kills"]["mutants_killed"] + found["kills"]["mutants_left"]
    assert min(found["published"]["peer_verdicts"].values()) > 0


def test_that_the_committed_evidence_is_small() -> None:
    sizes = {path.relative_to(RECORDS).as_posix(): path.stat().st_size for path in RECORDS.rglob("*.json")}
    assert sizes.pop("cuda.json", 0) < 150_000  # every law on every case of ours, once more
    assert sizes.pop("campaign.json", 0) < 100_000  # functions of other packages, a row each
    assert sizes.pop("package_specs.json", 0) < 10_000  # the specs of some of them, a row each
    assert sum(sizes.values()) < 300_000


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
    assert fuzz["examples"] == sum(row["examples"] for row in fuzz["functions"])
