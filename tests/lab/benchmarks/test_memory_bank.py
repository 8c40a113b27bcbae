"""The benchmark runs where the published package is, and the committed record shows what the page claims: no timing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradspec._record import read_experiment
from lab.benchmarks.form import noted

SCRIPT = Path(__file__).parents[3] / "src" / "gradspec_lab" / "benchmarks" / "memory_bank.py"
RECORD = Path(__file__).parents[3] / "docs" / "records" / "benchmarks" / "memory_bank.json"
needs_record = pytest.mark.skipif(
    not RECORD.is_file(), reason="no record is committed: `nox -s lab -- bench` writes it"
)
#: How many times as fast as the published operation at least, by rows of the bank.
FASTER = {10_000: 1.5, 100_000: 2.5, 1_281_167: 3.5}
#: Of the time of two matrix products at most: on a small bank the exponentials are not hidden behind the memory.
OF_TWO_PRODUCTS = {10_000: 1.2, 100_000: 1.05, 1_281_167: 1.05}


def record():
    return read_experiment(RECORD)


@pytest.fixture(params=FASTER, ids=lambda size: f"{size} rows")
def row(request):
    return next(row for row in record()["measurements"] if row["rows"] == request.param)


@needs_record
@pytest.mark.skipif("GRADSPEC_PUBLISHED" not in os.environ, reason="GRADSPEC_PUBLISHED names no folder with brails")
@pytest.mark.slow
def test_benchmark_writes_a_record_of_the_committed_form(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    small = [sys.executable, SCRIPT, "--size", "600", "--size", "700", "--rounds", "2", "--out", out]
    subprocess.run(small, check=True, capture_output=True)

    new, committed = read_experiment(out), record()
    assert new.keys() == committed.keys()
    assert noted(new) == noted(committed)
    assert [row.keys() for row in new["measurements"]] == [row.keys() for row in committed["measurements"][:2]]


@needs_record
def test_record_is_of_the_three_sizes():
    assert [row["rows"] for row in record()["measurements"]] == list(FASTER)
    assert (record()["batch"], record()["features"], record()["dtype"]) == (256, 128, "float32")


@needs_record
def test_record_shows_the_speed_that_is_promised(row):
    assert 1 / row["to_published"]["median"] >= FASTER[row["rows"]]
    assert row["to_two_products"]["median"] <= OF_TWO_PRODUCTS[row["rows"]]


@needs_record
def test_record_shows_memory_that_does_not_grow():
    rows = record()["measurements"]
    ours, published = ([row["extra_bytes"][way] for row in rows] for way in ("ours", "published"))

    assert 100 * ours[-1] <= published[-1]
    assert max(ours) <= 1.25 * min(ours)


@needs_record
def test_the_figures_show_the_measurements() -> None:
    rows, figures = record()["measurements"], record()["figures"]
    for name, kept, unit in (("memory", "extra_bytes", 2**20), ("time", "median_ms", 1)):
        assert figures[name]["x"]["values"] == [row["rows"] for row in rows]
        for line in figures[name]["lines"]:
            (values,) = line["runs"]
            assert values == pytest.approx([row[kept][line["label"]] / unit for row in rows], abs=0.005)
    assert [len(figures[name]["lines"]) for name in ("memory", "time")] == [2, 3]


@needs_record
def test_record_shows_one_loss_and_one_gradient(row):
    assert row["apart"]["loss"] <= 1e-6
    assert row["apart"]["gradient"] <= 1e-5
