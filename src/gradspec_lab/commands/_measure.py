"""The command `measure`: the committed evidence, made again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradspec.cli._shared import block

if TYPE_CHECKING:
    from gradspec.report import Report

RECORDS = Path("docs/records")
#: What an interrupted measurement goes on from.
BUILD = Path("build/lab")
SITES = {name: Path("build") / name / "site-packages" for name in ("peers", "audits")}


def _kills() -> None:
    from gradspec._record import RecordError, write
    from gradspec.cli import _screen
    from gradspec_lab.selftest._record import read_matrix
    from gradspec_lab.selftest._run import selftest

    begun = BUILD / "kills.json"
    try:
        known = read_matrix(begun)
    except RecordError:
        known = None
    with _screen.progress() as progress:
        found = selftest(stock=True, known=known, progress=progress, save=lambda so_far: write(so_far.to_json(), begun))
    write(found.to_json(), begun)
    write(found.to_json(), RECORDS / "kill_matrix.json")


def _seeds() -> None:
    from dataclasses import replace

    from gradspec._record import RecordError, write
    from gradspec.cli import _screen
    from gradspec_lab.selftest._seeds_record import read_seeds
    from gradspec_lab.selftest._seeds_run import seeds

    begun = BUILD / "seeds.json"
    try:
        known = read_seeds(begun)
    except RecordError:
        known = None
    with _screen.progress() as progress:
        found = seeds(100, known=known, progress=progress, save=lambda so_far: write(so_far.to_json(), begun))
    write(found.to_json(), begun)
    write(replace(found, rows=()).to_json(), RECORDS / "seeds.json")


def _peers() -> None:
    from gradspec._record import write
    from gradspec.cli import _screen
    from gradspec.report import RecordError, read_record, write_record
    from gradspec_lab._tree import files_key
    from gradspec_lab.peers.record import measured, summary
    from gradspec_lab.peers.summary import summary_text

    begun = BUILD / f"peers-{files_key()}.json"  # of another tree nothing is taken

    def keep(report: Report) -> None:
        write_record(report, begun)

    try:
        known = read_record(begun)
    except RecordError:
        known = None
    with _screen.progress() as progress:
        report = measured(SITES["peers"], known=known, keep=keep, progress=progress)
    click.echo(summary(report))
    write(summary_text(report), RECORDS / "peers.json")


def _run(*words: str) -> Callable[[], None]:
    def run() -> None:
        subprocess.run([sys.executable, *words], check=True)

    return run


#: What measures each part, in the order in which they are run.
PARTS: Mapping[str, Callable[[], None]] = {
    "figures": _run("-m", "gradspec_lab.figures.figure_record", "--out", str(RECORDS / "figures")),
    "audits": _run(
        *("-m", "gradspec_lab.audits.audit_record", "--site", str(SITES["audits"])),
        *("--out", str(RECORDS / "audits.json")),
    ),
    "peers": _peers,
    "kills": _kills,
    "seeds": _seeds,
}


@click.command(
    epilog=block(
        "Examples",
        "python -m gradspec_lab measure",
        "python -m gradspec_lab measure figures kills",
    )
)
@click.argument("parts", nargs=-1, type=click.Choice(list(PARTS)), metavar="[PART...]")
def measure(parts: tuple[str, ...]) -> None:
    """Measure the committed evidence again and write its summaries: hours, and an interrupted run goes on.

    PART is one of figures, audits, peers, kills, seeds. All of them run unless told.
    """
    for name in parts or PARTS:
        click.echo(f"{name} ...")
        PARTS[name]()
