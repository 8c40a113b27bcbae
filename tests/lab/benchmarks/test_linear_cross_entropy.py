"""The benchmark runs, and the committed record shows what the page claims: no timing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gradspec._record import read_experiment
from lab.benchmarks.form import noted

SCRIPT = Path(__file__).parents[3] / "src" / "gradspec_lab" / "benchmarks" / "linear_cross_entropy.py"
RECORD = Path(__file__).parents[3] / "docs" / "records" / "benchmarks" / "linear_cross_entropy.json"
needs_record = pytest.mark.skipif(
    not RECORD.is_file(), reason="no record is committed: `nox -s lab -- bench` writes it"
)
ALONE, BOTH = "x alone", "x and weight"


def record():
    return read_experiment(RECORD)


def rows(by):
    """Return those by the number of classes."""
    return [row for row in record()["measurements"] if (row["by"], row["batch"], row["features"]) == (by, 256, 128)]


@needs_record
@pytest.mark.slow
def test_benchmark_writes_a_record_of_the_committed_form(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    small = [sys.executable, SCRIPT, "--size", "600", "--size", "700", "--rounds", "2", "--out", out]
    subprocess.run(small, check=True, capture_output=True)

    new, committed = read_experiment(out), record()
    assert new.keys() == committed.keys()
    assert noted(new) == noted(committed)
    assert [row.keys() for row in new["measurements"]] == [row.keys() for row in committed["measurements"][:4]]


@needs_record
def test_by_x_alone_it_is_faster_than_each_form_of_torch():
    assert [row["classes"] for row in rows(ALONE) if row["to_torch"]["median"] >= 1] == []


@needs_record
@pytest.mark.parametrize("of", ["batch", "features"])
def test_the_other_sizes_are_varied_on_both_sides(of: str) -> None:
    drawn = record()["figures"][of]
    (middle,) = {row[of] for row in rows(ALONE)}

    assert drawn["x"]["values"][0] < middle < drawn["x"]["values"][-1]
    for line in drawn["lines"]:
        at = [row for row in record()["measurements"] if row["by"] == line["label"] and row["classes"] == 100_000]
        ratios = {row[of]: row["to_torch"]["median"] for row in at if row[of] != middle}
        drawn_here = dict(zip(drawn["x"]["values"], line["runs"][0], strict=True))
        # Drawn to three decimals; 0.4665 is half a unit away from 0.467, and as a binary number a little more.
        assert {size: drawn_here[size] for size in ratios} == pytest.approx(ratios, abs=0.0005 + 1e-12)


@needs_record
@pytest.mark.parametrize("by", [ALONE, BOTH])
def test_record_shows_memory_that_does_not_grow(by):
    ours, plain = ([row["extra_bytes"][way] for row in rows(by)] for way in ("ours", "torch, plain"))

    assert 10 * ours[-1] <= plain[-1]
    assert max(ours) <= 1.25 * min(ours)


@needs_record
def test_record_shows_one_loss_and_one_gradient():
    assert [row["classes"] for row in record()["measurements"] if row["apart"] > 1e-5] == []


@needs_record
def test_the_figures_show_the_measurements() -> None:
    figures = record()["figures"]
    for name, by, kept, unit in (
        ("alone", ALONE, "median_ms", 1),
        ("both", BOTH, "median_ms", 1),
        ("memory", BOTH, "extra_bytes", 2**20),
    ):
        assert figures[name]["x"]["values"] == [row["classes"] for row in rows(by)]
        for line in figures[name]["lines"]:
            (values,) = line["runs"]
            assert values == pytest.approx([row[kept][line["label"]] / unit for row in rows(by)], abs=0.005)
