"""What a run measured, as a JSON record that a page can plot: lines by epoch, a value for each seed."""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import torch

from gradspec._record import provenance as measured_now
from gradspec.report import write_experiment

DIGITS = 6


def figure(
    title: str, y: str, lines: Mapping[str, Sequence[Sequence[float]]], *, first: int = 1, **axis: str
) -> dict[str, Any]:
    """Return lines by epoch.

    Args:
        title: what the figure shows.
        y: the label of the vertical axis.
        lines: for each label, the values by epoch of each seed.
        first: the first epoch; 0 is before training.
        axis: `format`, a Python format of the values, and `scale`, linear unless "log".
    """
    epochs = len(next(iter(lines.values()))[0])
    return {
        "title": title,
        "x": {"label": "epoch", "values": list(range(first, first + epochs))},
        "y": {"label": y, **axis},
        "lines": [
            {"label": label, "runs": [[round(value, DIGITS) for value in run] for run in runs]}
            for label, runs in lines.items()
        ],
    }


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return the mean and the range over the seeds."""
    mean = sum(values) / len(values)
    return {"mean": round(mean, DIGITS), "low": round(min(values), DIGITS), "high": round(max(values), DIGITS)}


def provenance(seeds: int, *packages: str) -> dict[str, Any]:
    """Return when, where and on what versions a run was made, those of some packages too; no host name."""
    return {
        **measured_now(folder=Path(__file__).parent),
        **{name: version(name) for name in packages},
        "threads": torch.get_num_threads(),
        "seeds": list(range(seeds)),
        "command": shlex.join(["python", *sys.argv]),
    }


def check_writable(out: Path | None) -> None:
    """Make the folder of the record before time is spent on what could not be written."""
    if out is None:
        return
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out.parent):
            pass
    except OSError as error:
        raise click.BadParameter(f"{out} cannot be written ({error.strerror})", param_hint="'--out'") from None


def write(record: Mapping[str, Any], out: Path) -> None:
    """Write a record, all or nothing."""
    write_experiment(record, out)
    click.echo(f"written to {out}")
