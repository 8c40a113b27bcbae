"""The command `selftest`: the laws held to specimens and mutants."""

from __future__ import annotations

import math
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradspec.cli._commands import main
from gradspec.cli._shared import Unusable, block, jobs_option, one_line_errors, refuse_unwritable, save

if TYPE_CHECKING:
    from gradspec.selftest._record import Matrix, Subject


@main.command(
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
        "gradspec selftest",
        "gradspec selftest --mutants GradFactor.sign_flipped",
        "gradspec selftest --specimens --stock off_by_a_millionth",
        "gradspec selftest --stock --record docs/records/kill_matrix.json",
        "gradspec selftest --seeds 100 --record docs/records/kill_matrix.json",
    )
)
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option("--specimens", "only", flag_value="specimens", help="Only the specimens, sound and diseased.")
@click.option("--mutants", "only", flag_value="mutants", help="Only the mutants of our functions.")
@click.option("--stock", is_flag=True, help="Ask gradcheck, gradgradcheck and opcheck about the specimens too.")
@click.option(
    "--seeds",
    default=0,
    metavar="N",
    help="Hold the sound functions to every law under N seeds, and no more; a --record keeps what else it holds.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the tensors and directions that are drawn.")
@jobs_option
@click.option(
    "--minutes", default=math.inf, type=float, help="Stop then, and keep what was found; no limit unless told."
)
@click.option("--json", "as_json", is_flag=True, help="Print the matrix as JSON, and nothing else, to stdout.")
@click.option("--record", type=click.Path(path_type=Path), metavar="PATH", help="Save the matrix, whatever it says.")
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
) -> None:
    """Hold the laws to functions that are broken on purpose, and say which law notices which.

    NAME is a part of the name of a specimen, or of a mutant (FUNCTION.MUTATION); all of them unless told.
    """
    from gradspec.cli import _tables

    with one_line_errors():
        refuse_unwritable(record, option="--record")
        with _tables.progress() as report_progress:
            try:
                matrix = (
                    _swept(seeds, record, jobs=jobs, minutes=minutes, progress=report_progress)
                    if seeds
                    else _run(
                        names,
                        specimens=only != "mutants",
                        mutated=only != "specimens",
                        stock=stock,
                        seed=seed,
                        jobs=jobs,
                        minutes=minutes,
                        progress=report_progress,
                    )
                )
            except ValueError as error:
                raise Unusable(str(error)) from None
        if record is not None:
            save(matrix.to_json(), record, option="--record")
    if as_json:
        click.echo(matrix.to_json(), nl=False)
    else:
        _print(matrix)
    sys.exit(1 if matrix.faults or matrix.seeds.get("failures") else 0)


def _run(names: tuple[str, ...], **how: Any) -> Matrix:
    from gradspec.selftest._run import selftest as run

    return run(names, **how)


def _swept(seeds: int, record: Path | None, **how: Any) -> Matrix:
    """Return the matrix of a record, if there is one, with what the seeds gave."""
    from gradspec._provenance import provenance
    from gradspec.profile import load_profile
    from gradspec.selftest._record import Matrix, read_matrix
    from gradspec.selftest._run import measured_sources
    from gradspec.selftest._seeds import sweep

    if record is not None and record.exists():
        matrix = read_matrix(record)
    else:
        facts = provenance(load_profile("quick"), 0)
        matrix = Matrix(provenance=facts, sources=measured_sources(), population={}, subjects=())
    return replace(matrix, seeds=sweep(seeds, **how))


def _print(matrix: Matrix) -> None:
    from gradspec.cli import _tables

    screen = _tables.console()
    _tables.put(screen, _tables.kill_matrix(matrix))
    for subject in matrix.faults:
        click.echo(f"{click.style(subject.name, bold=True)}: {subject.fault}")
    if matrix.seeds:
        click.echo(
            f"seeds: {matrix.seeds['run']}, {matrix.seeds['tried']} of {matrix.seeds['cases']} cases, "
            f"{matrix.seeds['verdicts']} verdicts, "
            f"{len(matrix.seeds['failures'])} failures"
        )
        for line in matrix.seeds["failures"]:
            click.echo(line)
    for sort, count in Counter(subject.sort for subject in matrix.subjects).items():
        killed = sum(subject.is_killed for subject in matrix.of(sort))
        click.echo(f"{sort}: {killed} of {count} killed (there are {matrix.population[sort]}){_more(matrix.of(sort))}")


def _more(subjects: tuple[Subject, ...]) -> str:
    proven = sum(bool(subject.proof) for subject in subjects)
    return f", {proven} proven to be no different" if proven else ""
