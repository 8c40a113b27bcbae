"""The command `measure`: the committed evidence, made again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradspec.cli._shared import block

if TYPE_CHECKING:
    from gradspec.report import Report

RECORDS = Path("docs/records")
#: What an interrupted measurement goes on from.
BUILD = Path("build/lab")
SITES = {name: Path("build") / name / "site-packages" for name in ("peers", "audits")}


def _missing_kills(again: Collection[str]) -> None:
    """Measure the subjects that the summary lacks, those of some names or groups, and all under some laws."""
    from gradspec._record import write
    from gradspec.cli import _screen
    from gradspec.laws import LAWS
    from gradspec_lab.evidence.sample import population
    from gradspec_lab.selftest._record import read_matrix
    from gradspec_lab.selftest._run import selftest

    kept, today = read_matrix(RECORDS / "kill_matrix.json"), population()
    held = {one.name: one for one in kept.subjects}
    order = [name for names in today.values() for name in names]
    asked = [name for name in order if name not in held or {name, held[name].group}.intersection(again)]
    click.echo(f"kills: {len(asked)} of {len(order)} subjects")
    if asked:
        with _screen.progress() as progress:
            found = selftest(asked, exactly=True, stock=True, progress=progress)
        held |= {one.name: one for one in found.subjects}
        kept = replace(kept, laws=found.laws, population=found.population)
    if laws := [law for law in LAWS if law.name in again]:
        with _screen.progress() as progress:
            found = selftest([name for name in order if name not in asked], laws=laws, exactly=True, progress=progress)
        held |= {one.name: held[one.name].with_laws(one, found.laws, kept.laws) for one in found.subjects}
    whole = replace(
        kept, provenance=_completed(kept.provenance, len(asked)), subjects=tuple(held[name] for name in order)
    )
    write(whole.to_json(), RECORDS / "kill_matrix.json")


def _missing_peers(again: Collection[str]) -> None:
    """Measure the cells that the summary lacks, and those of some laws; keep the others."""
    from gradspec._record import write
    from gradspec_lab._summary import read_summary, summary_text
    from gradspec_lab.peers.record import measured, planned

    kept, order = read_summary(RECORDS / "peers.json"), [check.cell for check in planned(SITES["peers"])]
    held = {v.cell: v for v in kept.verdicts}
    asked = {cell for cell in order if cell not in held or cell[1] in again}
    click.echo(f"peers: {len(asked)} of {len(order)} cells")
    if asked:
        found = measured(SITES["peers"], only=asked).verdicts
        held |= {v.cell: v for v in found if v.cell in asked}
    facts, verdicts = _completed(kept.provenance, len(asked)), tuple(held[cell] for cell in order)
    write(summary_text(replace(kept, provenance=facts, verdicts=verdicts)), RECORDS / "peers.json")


def _completed(known: Mapping[str, Any], count: int) -> dict[str, Any]:
    """Return what a summary says of its measurement, with what was measured later."""
    from gradspec._record import provenance

    now = provenance()
    return {**known, "completed": f"{count} at {now['commit']}, {now['date']}"}


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
    from gradspec_lab._summary import summary_text
    from gradspec_lab._tree import files_key
    from gradspec_lab.peers.record import measured, summary

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


#: What measures a part of each, and keeps the rest.
MISSING: Mapping[str, Callable[[Collection[str]], None]] = {"kills": _missing_kills, "peers": _missing_peers}


class _Measure(click.Command):
    """The command, and behind the word `cuda` the one that needs a device and takes other options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] == ["cuda"]:
            from gradspec_lab.commands._cuda import cuda

            cuda.main(args[1:], prog_name=f"{ctx.command_path} cuda")
        return super().parse_args(ctx, args)


@click.command(
    cls=_Measure,
    epilog=block(
        "Examples",
        "python -m gradspec_lab measure",
        "python -m gradspec_lab measure figures kills",
        "python -m gradspec_lab measure kills peers --missing --again module --again layout",
    ),
)
@click.argument("parts", nargs=-1, type=click.Choice(list(PARTS)), metavar="[PART...]")
@click.option("--missing", is_flag=True, help="Measure only what a summary lacks, of kills and peers; keep the rest.")
@click.option("--again", multiple=True, metavar="NAME", help="With --missing: this subject, group or law too.")
def measure(parts: tuple[str, ...], missing: bool, again: tuple[str, ...]) -> None:
    """Measure the committed evidence again and write its summaries: hours, and an interrupted run goes on.

    PART is one of figures, audits, peers, kills, seeds. All of them run unless told. `measure cuda` has options of its
    own (`measure cuda --help`) and runs by itself: it needs a device.
    """
    if again and not missing:
        raise click.UsageError("--again goes with --missing: without it all is measured")
    for name in parts or (MISSING if missing else PARTS):
        click.echo(f"{name} ...")
        if not missing:
            PARTS[name]()
        elif name in MISSING:
            MISSING[name](again)
        else:
            raise click.UsageError(f"{name} is measured as a whole: leave out --missing")
