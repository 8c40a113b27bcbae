"""What a run measured, as a JSON record that a page can plot: lines by epoch, a value for each seed."""

from __future__ import annotations

import inspect
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import torch

import gradspec
from gradspec._seal import sealed
from gradspec.report import write_whole
from gradspec.source import fingerprint, package_root

#: The form of the record. It moves when a reader of the old form would misread the new one.
SCHEMA = 1
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


def provenance(seeds: int) -> dict[str, Any]:
    """Return when, where and on what versions a run was made; no host name."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(),
        "gradspec": gradspec.__version__,
        "torch": torch.__version__,
        "scikit-learn": version("scikit-learn"),
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        "device": "cpu",
        "threads": torch.get_num_threads(),
        "seeds": list(range(seeds)),
        "command": shlex.join(["python", *sys.argv]),
    }


def sources(out: Path, script: str, *objects: Callable[..., Any]) -> list[dict[str, Any]]:
    """Return the files that the run stands on, each group with the hash of its syntax trees.

    Args:
        out: where the record will be; the names of the scripts are relative to its folder.
        script: the file of the example.
        objects: the classes and functions of gradspec that it uses.
    """
    package = package_root("gradspec")
    assert package is not None, "it is imported above"
    ours = sorted({Path(inspect.getfile(inspect.unwrap(thing))).relative_to(package).as_posix() for thing in objects})
    scripts = [Path(script).with_name("_digits.py").resolve(), Path(script).resolve()]
    names = [Path(os.path.relpath(path, out.resolve().parent)).as_posix() for path in scripts]
    return [
        {"package": "gradspec", "files": ours, "hash": fingerprint(ours, package)},
        {"package": "", "files": names, "hash": fingerprint(map(str, scripts), None)},
    ]


def check_writable(out: Path | None) -> None:
    """Make the folder of the record before time is spent on what could not be written."""
    if out is None:
        return
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        partial = out.with_name(f"{out.name}.partial")
        partial.touch()
        partial.unlink()
    except OSError as error:
        raise click.BadParameter(f"{out} cannot be written ({error.strerror})", param_hint="'--out'") from None


def write(record: Mapping[str, Any], out: Path) -> None:
    """Write a record, all or nothing, each list of numbers on one line so that a diff can be read."""
    text = json.dumps(sealed({"schema": SCHEMA, **record}), indent=1, ensure_ascii=False)
    text = re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda found: f"[{' '.join(found[1].split())}]", text)
    write_whole(text + "\n", out)
    click.echo(f"written to {out}")


def _commit() -> str:
    """Return the commit of the source, "+" behind it if something has changed since; "" outside git."""
    try:
        answers = [
            subprocess.run(
                ["git", *words], capture_output=True, text=True, check=True, cwd=Path(__file__).parent
            ).stdout.strip()
            for words in (("rev-parse", "--short=12", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
        ]
    except (OSError, subprocess.CalledProcessError):
        return ""
    return answers[0] + ("+" if answers[1] else "")
