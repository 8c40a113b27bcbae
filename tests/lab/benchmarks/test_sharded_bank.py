"""The benchmark writes a record of the committed form, and that record is of one batch and one loss: no timing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gradspec._record import read_experiment
from lab.benchmarks.form import noted

SCRIPT = Path(__file__).parents[3] / "src" / "gradspec_lab" / "benchmarks" / "sharded_bank.py"
RECORD = Path(__file__).parents[3] / "docs" / "records" / "benchmarks" / "sharded_bank.json"


@pytest.mark.slow
def test_benchmark_writes_a_record_of_the_committed_form(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    small = [sys.executable, SCRIPT, "--size", "60", "--size", "70", "--rounds", "2", "--out", out]
    subprocess.run(small, check=True, capture_output=True)

    new, committed = read_experiment(out), read_experiment(RECORD)
    assert new.keys() == committed.keys()
    assert noted(new) == noted(committed)
    assert [row.keys() for row in new["measurements"]] == [row.keys() for row in committed["measurements"][:2]]


def test_one_rank_and_two_have_one_loss() -> None:
    rows = read_experiment(RECORD)["measurements"]
    assert [row["rows"] for row in rows] == [1_000, 10_000, 100_000]
    assert max(row["losses_apart"] for row in rows) <= 1e-6


def test_the_figure_shows_the_measurements() -> None:
    record = read_experiment(RECORD)
    (figure,) = record["figures"].values()
    assert figure["x"]["values"] == [row["rows"] for row in record["measurements"]]
    drawn = [line["runs"][0] for line in figure["lines"]]
    kept = [[row["ratios"][k]["median"] for row in record["measurements"]] for k in (0, 1)]
    assert drawn == [pytest.approx(values, abs=1e-4) for values in kept]
