"""The benchmark runs, and the committed record shows what the page claims. Nothing is timed here."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gradspec._record import read_experiment
from lab.benchmarks.form import noted

SCRIPT = Path(__file__).parents[3] / "src" / "gradspec_lab" / "benchmarks" / "gradient_scaling.py"
RECORD = Path(__file__).parents[3] / "docs" / "records" / "benchmarks" / "gradient_scaling.json"


@pytest.mark.slow
def test_benchmark_writes_a_record_of_the_committed_form(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    subprocess.run(
        [sys.executable, SCRIPT, "--mib", "1", "--rounds", "2", "--out", out], check=True, capture_output=True
    )
    new, committed = read_experiment(out), read_experiment(RECORD)
    assert new.keys() == committed.keys()
    assert noted(new) == noted(committed)
    assert [row.keys() for row in new["measurements"]] == [row.keys() for row in committed["measurements"]]


@pytest.mark.parametrize("way", ["GradFactor", "GradMultiply"])
def test_record_is_within_reach_of_a_minimal_function_at_64_mib(way: str) -> None:
    row = read_experiment(RECORD)["measurements"][0]
    (ratio,) = (r for r in row["ratios"] if (r["of"], r["to"]) == (way, "minimal"))
    assert row["bytes"] == 64 * 2**20
    assert ratio["median"] < 1.15
    assert (row["forward_bytes"][way], row["forward_bytes"]["minimal"]) == (0, 0)


def test_record_shows_half_the_memory_of_the_way_without_a_function() -> None:
    row = read_experiment(RECORD)["measurements"][0]
    held = {way: round(found / row["bytes"], 2) for way, found in row["peak_bytes"].items()}
    assert held == {"GradFactor": 1, "GradMultiply": 1, "minimal": 1, "minimal with setup_context": 1, "with detach": 2}


@pytest.mark.parametrize(("name", "way"), [("grad_factor", "GradFactor"), ("grad_multiply", "GradMultiply")])
def test_the_figures_show_the_measurements(name: str, way: str) -> None:
    record = read_experiment(RECORD)
    rows, figures = record["measurements"], record["figures"]
    shown = {line["label"]: line["runs"][0] for line in figures[f"{name}_time"]["lines"]}
    assert list(shown) == [way, "minimal with setup_context", "with detach"]
    for label, values in shown.items():
        assert values == [r["median"] for row in rows for r in row["ratios"] if r["of"] == label]
    assert figures[f"{name}_time"]["x"]["values"] == [row["elements"] for row in rows]
    shown = {line["label"]: line["runs"][0] for line in figures[f"{name}_memory"]["lines"]}
    assert shown[f"{way}, forward alone"] == [0.0] * (len(rows) - 1)
    assert shown[f"{way}, both passes"] == pytest.approx(
        [row["peak_bytes"][way] / row["bytes"] for row in rows[:-1]], abs=1e-4
    )


def test_what_a_call_holds_at_once_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SCRIPT.parent)
    peak_bytes = importlib.import_module("gradspec_lab.benchmarks._peak").peak_bytes
    x = torch.ones(1024)
    assert peak_bytes(lambda: x.exp().sin().cos()) == 2 * x.nbytes
    assert peak_bytes(lambda: [x.exp(), x.sin(), x.cos()]) == 3 * x.nbytes
    assert peak_bytes(lambda: x.exp_()) == 0
