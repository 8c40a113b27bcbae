"""The command `house`: what the package is made of, beside an earlier tree."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from gradspec_lab.house import counts


@click.command()
@click.option("--root", type=click.Path(path_type=Path, exists=True), default=Path(), help="The tree. Default: here.")
@click.option("--before", type=click.Path(path_type=Path, exists=True), help="An earlier tree, for a second column.")
def house(root: Path, before: Path | None) -> None:
    """Count lines, rooms, circles, names, sessions, records and the way of one check, and list the circles of files."""
    trees = [_counted(tree) for tree in (before, root) if tree is not None]
    head = ("before", "after") if before else ("now",)
    click.echo("\n".join([_row("", head), *(_row(n, [t["counts"][n] for t in trees]) for n in trees[-1]["counts"])]))
    for circle in trees[-1]["circles"]:
        click.echo(f"circle: {' - '.join(circle)}")


def _row(name: str, cells: Any) -> str:
    return f"{name:50}" + "".join(f"{cell:>12,}" if isinstance(cell, int) else f"{cell:>12}" for cell in cells)


def _counted(tree: Path) -> dict[str, Any]:
    """Return what a process finds that imports the gradspec of a tree."""
    command = [sys.executable, "-P", counts.__file__, "--root", str(tree)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise click.ClickException(f"{tree} cannot be counted: {(done.stderr.splitlines() or ['no reason given'])[-1]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
