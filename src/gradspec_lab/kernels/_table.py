"""Tables of the verdicts of the judges."""

import csv
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table


def accused(line: dict[str, Any], judge: str) -> bool | None:
    """Whether a judge refused any output or gradient; None if it raised or did not run."""
    told = line["judges"].get(judge)
    if told is None or any(passes is None for passes, _ in told["verdicts"].values()):
        return None
    return not all(passes for passes, _ in told["verdicts"].values())


def _count(lines: list[dict[str, Any]], judge: str) -> str:
    told = [accused(line, judge) for line in lines]
    silent = sum(answer is None for answer in told)
    return f"{sum(answer is True for answer in told)}" + (f" ({silent} without)" if silent else "")


def show(lines: Iterable[dict[str, Any]], judges: Iterable[str], console: Console) -> None:
    """Print false alarms by kernel and dtype, what was found by defect, and kernels that failed to run."""
    lines, judges = list(lines), list(judges)
    good = [line for line in lines if "error" not in line]
    _table(
        console, "False alarms on sound kernels of others", judges,
        {(line["name"], line["dtype"]): [] for line in good if line["case"] == "sound"}, good, "sound",
    )  # fmt: skip
    for case, title in (
        ("unsound", "Found in published kernels that are wrong"),
        ("revealing", "Found in wrong kernels, on revealing arguments"),
        ("friendly", "Found in wrong kernels, on arguments that hide the defect"),
        ("twin", "False alarms on the sound twins, on the revealing arguments"),
    ):
        rows: dict[tuple[str, str], list[Any]] = {(line["name"], ""): [] for line in good if line["case"] == case}
        _table(console, title, judges, rows, good, case)
    for line in lines:
        if "error" in line:
            console.print(f"did not run: {line['key']} {line['dtype']}: {line['error']}", markup=False)


#: What a column of the summary is about, and what its counts are.
CASES = {
    "sound": "sound, of packages: refused",
    "twin": "sound, of ours: refused",
    "unsound": "wrong, of packages: found",
    "revealing": "wrong, of ours: found",
    "friendly": "wrong, of ours, on calls that hide it: found",
}
#: The judges, as a page calls them.
NAMES = {
    "derived": "gradspec",
    "declared": "gradspec, with what a kernel declares",
    "two_times": "flash-attention's two times",
    "rmse": "inductor's RMSE",
    "assert_close": "assert_close",
    "allclose": "allclose(1e-2)",
    "cosine": "cosine 0.99",
}


def summarise(lines: Iterable[dict[str, Any]], path: Path, commit: str) -> None:
    """Write a row of counts for each judge to a CSV file, and when and on what they were measured in the first cell."""
    of = {case: [line for line in lines if line["case"] == case and "error" not in line] for case in CASES}
    of = {case: found for case, found in of.items() if found}
    when = datetime.now(UTC).strftime("%Y-%m-%d")
    facts = f"{when}, {commit or 'unknown commit'}, torch {torch.__version__}"
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([facts, *(CASES[case] for case in of)])
        out.writerow(["kernels", *(len({line["name"] for line in found}) for found in of.values())])
        out.writerow(["runs", *map(len, of.values())])
        for judge, name in NAMES.items():
            out.writerow([name, *(_count(found, judge) for found in of.values())])


def _table(
    console: Console, title: str, judges: list[str], rows: dict[tuple[str, str], list[Any]], lines: Any, case: str
) -> None:
    if not rows:
        return
    for line in lines:
        if line["case"] == case:
            rows[line["name"], line["dtype"] if case == "sound" else ""].append(line)
    table = Table("kernel", "dtype", "runs", "s/run", *judges, title=title)
    for (name, dtype), of in rows.items():
        seconds = sum(line["seconds"] for line in of) / len(of)
        table.add_row(name, dtype, str(len(of)), f"{seconds:.3f}", *(_count(of, judge) for judge in judges))
    every = [line for of in rows.values() for line in of]
    table.add_section()
    table.add_row("all", "", str(len(every)), "", *(_count(every, judge) for judge in judges))
    console.print(table)
