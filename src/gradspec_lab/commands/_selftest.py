"""The command `selftest`: the laws held to specimens and mutants."""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradspec.cli._kept import known_in, say_what_is_current
from gradspec.cli._shared import Unusable, block, jobs_option, one_line_errors, refuse_unwritable, save
from gradspec_lab.commands._seeds import print_seeds, seeds_of

if TYPE_CHECKING:
    from gradspec_lab.selftest._record import Matrix, Subject


@click.command(
    epilog=block(
        "Exit code",
        "0  every diseased specimen is killed by its own law, no sound one by any, and each mutant that survives",
        "   has a proof that nothing can tell it from the original",
        "1  one is not",
        "2  the arguments cannot be used; nothing was run or written",
    )
    + "\n\n"
    + block(
        "Examples",
        "python -m gradspec_lab selftest",
        "python -m gradspec_lab selftest --mutants GradFactor.sign_flipped",
        "python -m gradspec_lab selftest --specimens --stock off_by_a_millionth",
        "python -m gradspec_lab selftest --stock --record build/lab/kills.json",
        "python -m gradspec_lab selftest --seeds 100 scaled weighed",
        "python -m gradspec_lab selftest --seeds 100 --record build/lab/seeds.json",
    )
)
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option("--specimens", "only", flag_value="specimens", help="Run only the specimens, sound and broken.")
@click.option("--mutants", "only", flag_value="mutants", help="Run only the mutants of the documented functions.")
@click.option("--stock", is_flag=True, help="Also run gradcheck, gradgradcheck and opcheck on the specimens.")
@click.option(
    "--seeds",
    default=0,
    metavar="N",
    help="Run the sound functions with every law, and the broken specimens with their own laws, under N seeds each; "
    "--record then names a separate record.",
)
@click.option("--seed", default=0, show_default=True, help="Seed for drawing tensors and directions.")
@jobs_option
@click.option(
    "--minutes",
    default=math.inf,
    type=float,
    help="Stop after so many minutes, and keep the results. Default: no limit.",
)
@click.option("--json", "as_json", is_flag=True, help="Print only the matrix, as JSON, to stdout.")
@click.option(
    "--record",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Save the matrix to a record, or with --seeds what was found; go on from one of the same files and versions.",
)
@click.option("--fresh", is_flag=True, help="Measure everything again, even if the record holds it.")
def selftest(
    names: tuple[str, ...],
    only: str | None,
    stock: bool,
    seeds: int,
    seed: int,
    jobs: int | None,
    minutes: float,
    as_json: bool,
    record: Path | None,
    fresh: bool,
) -> None:
    """Hold the laws to functions that are broken on purpose, and say which law notices which.

    NAME is a part of the name of a specimen, or of a mutant (FUNCTION.MUTATION); with --seeds, of a specimen or of a
    sound function. All of them run unless told.
    """
    with one_line_errors():
        refuse_unwritable(record, option="--record")
        how = {"jobs": jobs, "minutes": minutes}
        if seeds:
            if names and record is not None:
                raise Unusable("a record of seeds is of all functions: leave out NAME, or --record")
            swept = seeds_of(seeds, names, record, fresh=fresh, **how)
            _finish(swept.to_json(), record, as_json=as_json)
            if not as_json:
                print_seeds(swept.swept)
            sys.exit(1 if swept.swept["failures"] or swept.swept["diseased"]["missed"] else 0)
        parts = {"specimens": only != "mutants", "mutated": only != "specimens", "stock": stock}
        matrix = _run(names, record, fresh=fresh, seed=seed, **parts, **how)
        _finish(matrix.to_json(), record, as_json=as_json)
    if not as_json:
        _print(matrix)
    sys.exit(1 if matrix.faults else 0)


def _finish(text: str, record: Path | None, *, as_json: bool) -> None:
    if record is not None:
        save(text, record, option="--record")
    if as_json:
        click.echo(text, nl=False)


def _run(names: tuple[str, ...], record: Path | None, *, fresh: bool, **how: Any) -> Matrix:
    from gradspec.cli import _screen
    from gradspec_lab.selftest._record import KIND, read_matrix
    from gradspec_lab.selftest._run import selftest as run

    known, began = known_in(record, read_matrix, KIND, fresh=fresh), time.monotonic()
    with _screen.progress() as report_progress:
        try:
            matrix = run(names, known=known, progress=report_progress, **how)
        except ValueError as error:
            raise Unusable(str(error)) from None
    if record is not None:
        say_what_is_current("subjects", len(matrix.subjects), matrix.measured, began)
    return matrix


def _print(matrix: Matrix) -> None:
    from gradspec.cli import _screen
    from gradspec_lab.commands._table import kill_matrix

    screen = _screen.console()
    _screen.put(screen, kill_matrix(matrix))
    for subject in matrix.faults:
        click.echo(f"{click.style(subject.name, bold=True)}: {subject.fault}")
    for sort, count in Counter(subject.sort for subject in matrix.subjects).items():
        killed = sum(subject.is_killed for subject in matrix.of(sort))
        click.echo(f"{sort}: {killed} of {count} killed (there are {matrix.population[sort]}){_more(matrix.of(sort))}")


def _more(subjects: tuple[Subject, ...]) -> str:
    proven = sum(bool(subject.proof) for subject in subjects)
    return f", {proven} proven to be no different" if proven else ""
