"""The benchmark of the text engine runs, and the committed record has its form. Nothing is timed here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("text_engine.py")
RECORD = Path(__file__).parents[2] / "docs" / "records" / "benchmarks" / "text_engine.json"


def test_benchmark_writes_a_record_of_the_committed_form(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    subprocess.run(
        [sys.executable, SCRIPT, "--scale", "0.01", "--rounds", "2", "--out", out], check=True, capture_output=True
    )
    new, committed = json.loads(out.read_text()), json.loads(RECORD.read_text())
    assert new.keys() == committed.keys()
    assert new["provenance"].keys() == committed["provenance"].keys()
    assert [row.keys() for row in new["measurements"]] == [row.keys() for row in committed["measurements"]]


def test_record_grows_linearly_with_the_length_of_a_chain() -> None:
    rows = {
        (row["graph"], row["nodes"]): row["nodes_a_second"] for row in json.loads(RECORD.read_text())["measurements"]
    }
    assert rows["chain", 100_000]["backward_cpu"] > rows["chain", 1_000]["backward_cpu"] / 3
