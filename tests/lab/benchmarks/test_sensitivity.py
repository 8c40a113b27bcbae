"""The benchmark runs, and the committed record shows what the page claims. Nothing is timed here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gradspec._record import read_experiment

SCRIPT = Path(__file__).parents[3] / "src" / "gradspec_lab" / "benchmarks" / "sensitivity.py"
RECORD = read_experiment(Path(__file__).parents[3] / "docs/records/benchmarks/sensitivity.json")


@pytest.mark.slow
def test_benchmark_writes_a_record_of_the_committed_form(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    words = ["--rounds", "3", "--largest", "100", "--out", str(out)]
    subprocess.run([sys.executable, SCRIPT, *words], check=True, capture_output=True)
    new = read_experiment(out)
    assert new.keys() == RECORD.keys()
    assert new["measurements"][0].keys() == RECORD["measurements"][0].keys()
    # What is seen depends on seeds alone, not on the machine.
    assert new["seen"] == RECORD["seen"]


def test_the_law_sees_a_millionth_in_one_of_10_000_elements_and_fast_gradcheck_accepts_zero_at_100_000() -> None:
    small, large = RECORD["seen"]["millionth"][-1], RECORD["seen"]["zero_gradient"][-1]
    assert (small["elements"], small["seen"]["vjp"]) == (10_000, 1)
    assert (large["elements"], large["seen"]["vjp"], large["seen"]["gradcheck_fast"]) == (100_000, 1, 0)


def test_the_record_is_within_the_cost_that_is_promised() -> None:
    ratios = {row["elements"]: row["ratio"]["law vjp"]["median"] for row in RECORD["measurements"]}
    assert max(ratios[n] for n in (100, 1_000, 10_000)) <= 10
    assert ratios[1_000_000] <= 40
