"""The benchmark of calls that overlap runs, and the committed record has its form. Nothing is timed here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.form import noted
from gradspec._record import read_experiment

SCRIPT = Path(__file__).parents[2] / "tools" / "benchmarks" / "text_calls.py"
RECORD = Path(__file__).parents[2] / "docs" / "records" / "benchmarks" / "text_calls.json"


def test_benchmark_writes_a_record_of_the_committed_form(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    command = [sys.executable, SCRIPT, "--rounds", "1", "--site", "", "--out", out]
    subprocess.run(command, check=True, capture_output=True)
    new, committed = read_experiment(out), read_experiment(RECORD)
    assert new.keys() == committed.keys()
    assert noted(new) == noted(committed)
    here = [row for row in committed["measurements"] if row["backward pass"] == "gradspec.text"]
    assert [{**row, "rounds": 0, "seconds": 0} for row in new["measurements"]] == [
        {**row, "rounds": 0, "seconds": 0} for row in here
    ]
    # On no machine is a wait shorter than the delays that follow one another.
    alone, together = (row["seconds"]["best"] for row in new["measurements"][:2])
    assert alone > 17 * 0.1
    assert together > 2 * 0.1
