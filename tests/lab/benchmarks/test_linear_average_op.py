"""The benchmark runs where the published package is, and its figures show its measurements: nothing is timed here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from gradspec._record import read_experiment
from gradspec.functions import LinearAverageOp
from gradspec_lab.benchmarks._peak import peak_bytes
from lab.benchmarks.form import noted

SCRIPT = Path(__file__).parents[3] / "src" / "gradspec_lab" / "benchmarks" / "linear_average_op.py"
RECORD = Path(__file__).parents[3] / "docs" / "records" / "benchmarks" / "linear_average_op.json"
PRODUCTS = "two products"


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return read_experiment(RECORD)


@pytest.mark.slow
def test_benchmark_writes_a_record_of_the_committed_form(tmp_path: Path, record: dict[str, Any]) -> None:
    if "GRADSPEC_PUBLISHED" not in os.environ:
        pytest.skip("GRADSPEC_PUBLISHED names no folder with brails in it")
    out = tmp_path / "record.json"
    small = ["--size", "600", "--size", "700", "--size", "800", "--rounds", "2", "--out", out]
    subprocess.run([sys.executable, SCRIPT, *small], check=True, capture_output=True)
    new = read_experiment(out)
    assert new.keys() == record.keys()
    assert noted(new) == noted(record)
    assert [row.keys() for row in new["measurements"]] == [row.keys() for row in record["measurements"]]


def test_record_is_of_three_sizes(record: dict[str, Any]) -> None:
    assert [row["rows"] for row in record["measurements"]] == [1_000, 10_000, 100_000]


def test_the_figures_show_the_measurements(record: dict[str, Any]) -> None:
    rows, figures = record["measurements"], record["figures"]
    assert set(figures) == {"time", "memory"}
    for name in figures:
        assert figures[name]["x"]["values"] == [row["rows"] for row in rows]
    for line in figures["time"]["lines"]:
        expected = [
            r["median"] for row in rows for r in row["ratios"] if (r["of"], r["to"]) == (line["label"], PRODUCTS)
        ]
        assert line["runs"] == [expected]
    for line in figures["memory"]["lines"]:
        assert line["runs"] == [pytest.approx([row["peak_bytes"][line["label"]] / 2**20 for row in rows], abs=1e-4)]


def test_memory_is_that_of_the_logits_and_not_of_the_bank(record: dict[str, Any]) -> None:
    for row in record["measurements"]:
        logits = 4 * record["batch"] * row["rows"]
        batches = 4 * record["batch"] * record["features"]  # the gradient, and the rows that move
        assert logits <= row["peak_bytes"]["LinearAverageOp"] <= logits + 6 * batches


def test_the_logits_are_made_once() -> None:
    memory, params = torch.randn(4_000, 32), torch.tensor([0.07, 0.5])
    x, y, cotangent = torch.randn(64, 32, requires_grad=True), torch.arange(64), torch.randn(64, 4_000)
    logits = cotangent.nbytes
    both = peak_bytes(lambda: torch.autograd.grad(LinearAverageOp.apply(x, y, memory, params), x, cotangent))
    assert logits <= both <= 1.2 * logits
