"""`python -m gradspec_lab.kernels run`: judge kernels that are known to be sound or wrong."""

import json
from importlib import import_module
from pathlib import Path

import click
import torch
from rich.console import Console
from rich.progress import track

from gradspec_lab.kernels._judges import JUDGES, Judge
from gradspec_lab.kernels._run import plan, read, run_all
from gradspec_lab.kernels._table import show, summarise
from gradspec_lab.kernels._truth import gaps
from gradspec_lab.kernels.public import SOUND, UNSOUND


@click.group()
def main() -> None:
    """Judge kernels that are known to be sound or wrong."""


def _judge(path: str) -> tuple[str, Judge]:
    module, _, function = path.partition(":")
    try:
        return function, getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise click.BadParameter(f"{path} is not MODULE:FUNCTION: {error}", param_hint="--judge") from None


CASES = ("sound", "unsound", "wrong")


@main.command()
@click.option("--judge", "judges", multiple=True, metavar="MODULE:FUNCTION", help="A judge beside the comparing ones.")
@click.option("--runs", default=50, show_default=True, help="Runs of each kernel.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="A file of JSON lines.")
@click.option("--only", default="", help="Only the kernels whose names contain this.")
@click.option("--case", "cases", multiple=True, type=click.Choice(CASES), default=CASES, help="Which kernels.")
def run(judges: tuple[str, ...], runs: int, out: Path, only: str, cases: tuple[str, ...]) -> None:
    """Run each kernel and its reference, and let every judge speak of the same results.

    A judge is called with a `Measured` kernel, its arguments and the cotangents, and returns for each output and
    gradient, by name, whether it passes and a note. What FILE has already is not run again.
    """
    torch.set_num_threads(1)
    every = JUDGES | dict(map(_judge, judges))
    planned = list(plan(runs, only, cases))
    console = Console(width=None if Console().is_terminal else 160)
    lines = list(track(run_all(planned, every, out), "judging", len(planned), console=Console(stderr=True)))
    show(lines, every, console)


@main.command()
@click.option("--only", default="", help="Only the kernels whose names contain this.")
def prove(only: str) -> None:
    """Compare each published kernel with the map that is written beside it, and print how far it is, as JSON lines."""
    torch.set_num_threads(1)
    for name, kernel in (SOUND | UNSOUND).items():
        if only in name:
            click.echo(json.dumps({"name": name, "sound": name in SOUND, "gaps": gaps(kernel)}))


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--csv", type=click.Path(dir_okay=False, path_type=Path), help="Write the counts to this file too.")
@click.option("--commit", default="", help="At which commit they were measured, for that file.")
def table(files: tuple[Path, ...], csv: Path | None, commit: str) -> None:
    """Print the tables of files of results."""
    lines = [line for file in files for line in read(file).values()]
    if csv is not None:
        summarise(lines, csv, commit)
    judges = dict.fromkeys(judge for line in lines for judge in line["judges"])
    show(lines, judges, Console(width=None if Console().is_terminal else 160))


if __name__ == "__main__":
    main(prog_name="python -m gradspec_lab.kernels")
