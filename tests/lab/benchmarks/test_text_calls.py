"""The benchmark of calls that overlap runs, and the committed record has its form. Nothing is timed here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gradspec._record import read_experiment
from gradspec_lab.benchmarks import text_calls
from lab.benchmarks.form import noted

SCRIPT = Path(__file__).parents[3] / "src" / "gradspec_lab" / "benchmarks" / "text_calls.py"
RECORD = Path(__file__).parents[3] / "docs" / "records" / "benchmarks" / "text_calls.json"


@pytest.mark.slow
def test_benchmark_writes_a_record_of_the_committed_form(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    command = [sys.executable, SCRIPT, "--rounds", "1", "--site", "", "--out", out]
    subprocess.run(command, check=True, capture_output=True)
    new, committed = read_experiment(out), read_experiment(RECORD)
    assert new.keys() == committed.keys()
    assert noted(new) == noted(committed)
    measured = {"rounds": 0, "seconds": 0, "times_the_floor": 0}
    here = [row for row in committed["measurements"] if not row["way"].startswith("TextGrad")]
    assert [{**row, **measured} for row in new["measurements"]] == [{**row, **measured} for row in here]
    # On no machine is a wait shorter than the delays that follow one another.
    best = [row["seconds"]["best"] for row in new["measurements"] if row["way"] == "gradspec.text"]
    assert best[0] > 17 * 0.1
    assert min(best[1:5]) > 2 * 0.1
    assert best[5] > 0.1


def test_the_record_says_that_a_pass_is_near_its_floor() -> None:
    rows = [row for row in read_experiment(RECORD)["measurements"] if row["way"] == "gradspec.text"]
    assert max(row["times_the_floor"] for row in rows) <= 1.2


def test_the_figure_shows_the_passes_whose_branches_do_not_wait_for_one_another() -> None:
    record = read_experiment(RECORD)
    assert record["figures"] == text_calls.figures(record["measurements"])
    lines = {line["label"]: line for line in record["figures"]["backward"]["lines"]}
    assert lines["gradspec.text"]["x"] == lines["threads of http.client"]["x"] == [17, 33, 65]
    assert lines["TextGrad 0.1.8, one at a time"]["x"] == [17, 33]
