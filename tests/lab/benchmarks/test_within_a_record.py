"""What a record says twice is one number: a median is within its runs, a ratio fits its medians, a mean its curves."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gradspec._record import read_experiment

RECORDS = Path(__file__).parents[3] / "docs" / "records"
PATHS = sorted(path for folder in ("benchmarks", "examples", "figures") for path in (RECORDS / folder).glob("*.json"))
every = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def groups(value: Any, place: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each group of named values of a record, with where it is."""
    if isinstance(value, Mapping):
        yield place, value
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from groups(inner, f"{place}.{key}".lstrip("."))


def faults(record: Mapping[str, Any]) -> list[str]:
    """Return what a record says in two ways that do not fit."""
    found = []
    for place, group in groups({key: record.get(key) for key in ("measurements", "numbers")}):
        for low, middle, high in (("low", "mean", "high"), ("best", "median", "worst")):
            if {low, middle, high} <= group.keys() and not group[low] <= group[middle] <= group[high]:
                found.append(f"{place}: {middle} {group[middle]} is not within {group[low]} and {group[high]}")
        if {"median", "quartiles"} <= group.keys():
            low, high = group["quartiles"]
            if not low <= group["median"] <= high:
                found.append(f"{place}: median {group['median']} is not within the quartiles {low} and {high}")
        found += _unlike_the_medians(place, group)
        if {"mean", "low", "high"} <= group.keys():
            said = (group["mean"], group["low"], group["high"])
            # Numbers are written with six digits after the point.
            if not any(max(abs(a - b) for a, b in zip(said, ends, strict=True)) < 2e-6 for ends in curves(record)):
                found.append(f"{place}: mean {said[0]} of {said[1]} to {said[2]} is at the end of no curve")
    return found


def _unlike_the_medians(place: str, row: Mapping[str, Any]) -> Iterator[str]:
    # The median over the rounds of a quotient is not the quotient of the medians; they are as far apart as the
    # quotients of the rounds are, at the most.
    medians = row.get("median_ms", {})
    for name, ratio in groups({key: value for key, value in row.items() if key != "median_ms"}):
        pair = (ratio.get("of"), ratio.get("to"))
        if {"median", "quartiles"} <= ratio.keys() and medians.keys() >= set(pair):
            quotient, (low, high) = medians[pair[0]] / medians[pair[1]], ratio["quartiles"]
            if abs(quotient - ratio["median"]) > high - low:
                yield f"{place}.{name}: {pair[0]} / {pair[1]} is {ratio['median']}, and the medians give {quotient:.4f}"


def curves(record: Mapping[str, Any]) -> set[tuple[float, float, float]]:
    """Return mean, lowest and highest of the runs of each line, at its first and its last point."""
    return {
        (sum(values) / len(values), min(values), max(values))
        for figure in record.get("figures", {}).values()
        for line in figure["lines"]
        for values in ([run[at] for run in line["runs"]] for at in (0, -1))
    }


@every
def test_what_is_said_twice_fits(path: Path) -> None:
    assert faults(read_experiment(path)) == []


@pytest.mark.parametrize(
    ("name", "steps", "value", "says"),
    [
        ("benchmarks/gradient_scaling", ("measurements", 0, "ratios", 0, "median"), 1.3, "is not within the quartiles"),
        ("benchmarks/gradient_scaling", ("measurements", 0, "median_ms", "with detach"), 51.0, "and the medians give"),
        ("benchmarks/text_calls", ("measurements", 0, "seconds", "median"), 2.5, "median 2.5 is not within"),
        ("examples/shake_digits", ("numbers", "even-even", "test_error", "mean"), 0.019, "is at the end of no curve"),
    ],
)
def test_one_number_that_is_edited_is_found(name: str, steps: tuple[Any, ...], value: float, says: str) -> None:
    record = copy.deepcopy(dict(read_experiment(RECORDS / f"{name}.json")))
    assert faults(record) == []
    inner: Any = record
    for step in steps[:-1]:
        inner = inner[step]
    inner[steps[-1]] = value
    assert any(says in fault for fault in faults(record))
