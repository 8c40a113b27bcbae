"""The command `show`: a saved record as `check` showed it. Nothing here imports torch before it must."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gradspec.cli._output import (
    Output,
    exit_code,
    exit_zero_option,
    for_people,
    format_option,
    judging_options,
    read_baseline,
)
from gradspec.cli._shared import Unusable, block, one_line_errors, say_what_lacks
from gradspec.findings import Bar
from gradspec.law import Rank, Scope
from gradspec.report import read_records


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
@click.option("--verbose", "-v", is_flag=True, help="Also show why a law was not checked, and all facts of a failure.")
def show(
    record: Path,
    scopes: tuple[Scope, ...],
    fail_on: str,
    strict: bool,
    baseline: Path | None,
    html: Path | None,
    formats: tuple[str, ...],
    exit_zero: bool,
    verbose: bool,
) -> None:
    """Show a saved record as `check` showed it, with its exit code; `--scope` selects other checks."""
    with one_line_errors():
        reports = read_records(record)
        if len(reports) > 1 and (formats or html or baseline):
            raise Unusable(f"{record} holds {len(reports)} environments: --format, --html and --baseline take one")
        bar = Bar(scopes=scopes, fail_on=Rank(fail_on), strict=strict)
        output = Output.of(formats, html, bar=bar, baseline=read_baseline(baseline))
    if len(reports) > 1:
        from gradspec.cli import _report

        _report.print_differences(reports)
    say_what_lacks(record, reports)
    judged = [output.put(report, for_people(verbose=verbose, provenance=True)) for report in reports]
    lacks = any(report.incomplete for report in reports) and not exit_zero
    sys.exit(exit_code(*judged, exit_zero=exit_zero) or int(lacks))
