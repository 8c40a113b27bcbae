"""The terminal: how wide it is, and what is put on it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    pass


#: Wide enough for any table: a pipe has no width, and a name that is cut cannot be searched for.
NO_LIMIT = 10_000


def console() -> Console:
    """Return the console of stdout: as wide as the terminal, or without limit in a pipe."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=NO_LIMIT)


@contextlib.contextmanager
def progress() -> Iterator[Callable[[int, int, str], None] | None]:
    """Give a function that moves a progress bar on stderr, or None where stderr is not a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    screen = Console(stderr=True)
    if not screen.is_terminal:
        yield None
        return
    columns = (BarColumn(bar_width=30), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, label: bar.update(task, completed=done, total=total, description=label)


def put(screen: Console, table: Table) -> None:
    """Print a table without the blanks that rich pads its lines with in a pipe."""
    if screen.is_terminal:
        screen.print(table)
        return
    with screen.capture() as captured:
        screen.print(table)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))
