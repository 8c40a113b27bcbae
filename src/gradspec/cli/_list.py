"""The commands that run no law: `list`, `explain` and `show`. Nothing here imports torch before it must."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradspec._registry._laws import listed_laws, select_laws
from gradspec._registry._registry import listed_specs, resolve_all
from gradspec.cli._output import Output, exit_zero_option, for_people, format_option, judging_options, read_baseline
from gradspec.cli._shared import (
    Unusable,
    block,
    one_line_errors,
)
from gradspec.law import Rank
from gradspec.report import read_records

if TYPE_CHECKING:
    pass


@click.command("list", epilog=block("Examples", "gradspec list", "gradspec list my_package.specs"))
@click.argument("targets", nargs=-1, metavar="[TARGET...]")
def list_(targets: tuple[str, ...]) -> None:
    """List the specs that can be checked, and the laws.

    Without a TARGET: those of gradspec and of installed packages (entry points `gradspec.specs`).
    """
    from gradspec.cli import _screen, _tables

    with one_line_errors():
        pairs = resolve_all(targets) if targets else listed_specs()
        known = listed_laws()
    console = _screen.console()
    _screen.put(console, _tables.specs(pairs))
    _screen.put(console, _tables.laws(known))


@click.command(epilog=block("Examples", "gradspec explain vjp"))
@click.argument("law")
def explain(law: str) -> None:
    """Say what a law states, why it matters, what breaks it, and the remedy."""
    from gradspec.cli import _tables

    with one_line_errors():
        (found,) = select_laws([law], listed_laws())
    click.echo(_tables.law_page(found), nl=False)


@click.command(
    epilog=block(
        "Examples",
        "gradspec check gradspec.functions --record record.json",
        "gradspec show record.json --verbose",
        "gradspec show record.json --format sarif=gradspec.sarif --baseline main.json",
    )
)
@click.argument("record", type=click.Path(path_type=Path), metavar="RECORD.json")
@judging_options
@format_option
@exit_zero_option
@click.option("--verbose", "-v", is_flag=True, help="Show also why a law was not checked, and all facts of a failure.")
def show(
    record: Path,
    fail_on: str,
    baseline: Path | None,
    html: Path | None,
    formats: tuple[str, ...],
    exit_zero: bool,
    verbose: bool,
) -> None:
    """Show a saved record as `check` showed it, with the exit code of `check`."""
    with one_line_errors():
        reports = read_records(record)
        if len(reports) > 1 and (formats or html or baseline):
            raise Unusable(f"{record} holds {len(reports)} environments: --format, --html and --baseline take one")
        output = Output.of(formats, html, fail_on=Rank(fail_on), baseline=read_baseline(baseline))
    if len(reports) > 1:
        from gradspec.cli import _report

        _report.print_differences(reports)
    judged = [output.put(report, for_people(verbose=verbose, provenance=True)) for report in reports]
    sys.exit(1 if any(judgement.fails for judgement in judged) and not exit_zero else 0)
