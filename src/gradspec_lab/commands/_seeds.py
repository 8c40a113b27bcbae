"""`python -m gradspec_lab selftest --seeds`: what the sound and the broken get under many seeds."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradspec.cli._kept import known_in, say_what_is_current
from gradspec.cli._shared import Unusable, save

if TYPE_CHECKING:
    from gradspec_lab.selftest._seeds_record import Seeds


def seeds_of(count: int, names: tuple[str, ...], record: Path | None, *, fresh: bool, **how: Any) -> Seeds:
    """Run what has one of these names, and go on from the record if there is one."""
    from gradspec.cli import _screen
    from gradspec_lab.selftest._diseased_seeds import diseased_specimens
    from gradspec_lab.selftest._seeds import sound_specs
    from gradspec_lab.selftest._seeds_record import SEEDS, read_seeds
    from gradspec_lab.selftest._seeds_run import seeds as run

    for name in names:
        if not sound_specs([name]) and not diseased_specimens([name]):
            raise Unusable(f"no sound function and no specimen has {name!r} in its name")
    known, began = known_in(record, read_seeds, SEEDS, fresh=fresh), time.monotonic()
    if record is not None:
        how["save"] = lambda so_far: save(so_far.to_json(), record, option="--record")
    with _screen.progress() as report_progress:
        found = run(count, names, known=known, progress=report_progress, **how)
    if record is not None:
        say_what_is_current("cases and specimens", len(found.rows), found.measured, began)
    return found


def print_seeds(swept: Mapping[str, Any]) -> None:
    """Print the totals, and a line for each failure."""
    click.echo(
        f"seeds: {swept['run']}, {swept['tried']} of {swept['cases']} cases, {swept['verdicts']} verdicts, "
        f"{len(swept['failures'])} failures"
    )
    sick = swept["diseased"]
    click.echo(
        f"broken specimens: {sick['tried']} of {sick['specimens']}, noticed by their own laws "
        f"{sick['asked'] - len(sick['missed'])} of {sick['asked']} times"
    )
    for line in (*swept["failures"], *sick["missed"]):
        click.echo(line)
