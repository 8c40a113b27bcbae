"""The terminal: how wide it is, and what is put on it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from gradspec.cli._say import say

if TYPE_CHECKING:
    pass


#: From so many checks on, a run also says in a pipe how far it is.
LONG = 500
#: Wide enough for any table: a pipe has no width, and a name that is cut cannot be searched for.
NO_LIMIT = 10_000


def console() -> Console:
    """Return the console of stdout: as wide as the terminal, or without limit in a pipe."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=NO_LIMIT)


@contextlib.contextmanager
def progress() -> Iterator[Callable[[int, int, str], None] | None]:
    """Give a function that shows on stderr how far a run is: a bar on a terminal, elsewhere a line for each tenth."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    screen = Console(stderr=True)
    if not screen.is_terminal:
        yield _in_lines()
        return
    columns = (BarColumn(bar_width=30), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, label: bar.update(task, completed=done, total=total, description=label)


def _in_lines() -> Callable[[int, int, str], None]:
    """Return a function that writes a line for each tenth of a long run."""
    told = -1

    def tell(done: int, total: int, label: str) -> None:
        nonlocal told
        tenth = 10 * done // max(total, 1)
        if total >= LONG and tenth > told and done < total:
            told = tenth
            say(f"{done:,} of {total:,} checks done · {label}", err=True)

    return tell


def put(screen: Console, table: Table) -> None:
    """Print a table without the blanks that rich pads its lines with in a pipe."""
    if screen.is_terminal:
        screen.print(table)
        return
    with screen.capture() as captured:
        screen.print(table)
    say("\n".join(line.rstrip() for line in captured.get().splitlines()))
