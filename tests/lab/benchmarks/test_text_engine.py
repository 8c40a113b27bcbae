"""The benchmark of the text engine runs, and the committed record has its form. Nothing is timed here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gradspec._record import read_experiment
from gradspec_lab.benchmarks import text_engine
from lab.benchmarks.form import noted

SCRIPT = Path(__file__).parents[3] / "src" / "gradspec_lab" / "benchmarks" / "text_engine.py"
RECORD = Path(__file__).parents[3] / "docs" / "records" / "benchmarks" / "text_engine.json"


@pytest.mark.slow
def test_benchmark_writes_a_record_of_the_committed_form(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    subprocess.run(
        [sys.executable, SCRIPT, "--scale", "0.01", "--rounds", "2", "--site", "", "--out", out],
        check=True,
        capture_output=True,
    )
    new, committed = read_experiment(out), read_experiment(RECORD)
    assert new.keys() == committed.keys()
    assert noted(new) == noted(committed)
    assert new["TextGrad"].startswith("not measured: ")
    here = [row for row in committed["measurements"] if "graph of TextGrad" not in row]
    assert [list(row) for row in new["measurements"]] == [list(row) for row in here]


def test_a_peer_that_fails_is_not_measured_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "textgrad").mkdir()
    (tmp_path / "textgrad" / "__init__.py").write_text("raise ImportError('no tenacity')")
    about, rows = text_engine.textgrad(str(tmp_path), 1, 0.001)
    assert (about, rows) == ("not measured: ImportError: no tenacity", [])


def test_record_grows_linearly_with_the_length_of_a_chain() -> None:
    found = read_experiment(RECORD)["measurements"]
    rows = {(row["graph"], row["nodes"]): row["nodes_a_second"] for row in found if "graph" in row}
    assert rows["chain", 100_000]["backward_cpu"] > rows["chain", 1_000]["backward_cpu"] / 3


def test_the_figure_shows_the_measurements() -> None:
    record = read_experiment(RECORD)
    assert record["figures"] == text_engine.figures(record["measurements"])
    lines = {line["label"]: line for line in record["figures"]["backward"]["lines"]}
    assert list(lines) == ["ops.chat", "TextGrad 0.1.8", "the engine, no prompts"]
    assert lines["ops.chat"]["x"] == lines["TextGrad 0.1.8"]["x"] == [1_000, 10_000]
