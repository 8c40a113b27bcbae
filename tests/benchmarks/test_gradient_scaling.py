"""The benchmark runs, and the committed record shows what the page claims. Nothing is timed here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("gradient_scaling.py")
RECORD = Path(__file__).parents[2] / "docs" / "records" / "benchmarks" / "gradient_scaling.json"


def test_benchmark_writes_a_record_of_the_committed_form(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    subprocess.run(
        [sys.executable, SCRIPT, "--mib", "1", "--rounds", "2", "--out", out], check=True, capture_output=True
    )
    new, committed = json.loads(out.read_text()), json.loads(RECORD.read_text())
    assert new.keys() == committed.keys()
    assert new["provenance"].keys() == committed["provenance"].keys()
    assert [row.keys() for row in new["measurements"]] == [row.keys() for row in committed["measurements"]]


def test_record_is_within_reach_of_a_minimal_function_at_64_mib() -> None:
    row = json.loads(RECORD.read_text())["measurements"][0]
    assert row["bytes"] == 64 * 2**20
    assert row["ratio"]["median"] < 1.15
    assert row["forward_bytes"] == {"GradFactor": 0, "minimal": 0}
