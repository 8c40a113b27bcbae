"""The command `campaign`: the custom gradients of packages that people use, each in an environment of its own."""

from __future__ import annotations

from pathlib import Path

import click

from gradspec.cli._shared import block, one_line_errors

BUILD = Path("build/campaign")
OUT = Path("docs/records/campaign.json")
SPECS = Path("docs/records/package_specs.json")


@click.command(
    epilog=block(
        "Examples",
        "python -m gradspec_lab campaign",
        "python -m gradspec_lab campaign peft entmax --fresh",
        "python -m gradspec_lab campaign --prove peft",
        "python -m gradspec_lab campaign --specs",
    )
)
@click.argument("names", nargs=-1, metavar="[PACKAGE...]")
@click.option("--fresh", is_flag=True, help="Measure these packages again, also those that are known.")
@click.option("--prove", is_flag=True, help="Run the proofs of the findings, each in the environment of its package.")
@click.option("--specs", "is_specs", is_flag=True, help=f"Check specs of functions, and write {SPECS}.")
@click.option("--list", "is_list", is_flag=True, help="List the packages, and measure nothing.")
@click.option("--factor", default=1.0, show_default=True, help="Of the limits of time, for a slow or busy machine.")
@click.option("--out", type=click.Path(path_type=Path), default=OUT, show_default=True, help="The summary.")
@click.option("--build", type=click.Path(path_type=Path), default=BUILD, show_default=True, help="The results.")
@click.option("--tables", type=click.Path(path_type=Path, exists=True), help="A folder with tables of other packages.")
def campaign(
    names: tuple[str, ...],
    fresh: bool,
    prove: bool,
    is_specs: bool,
    is_list: bool,
    factor: float,
    out: Path,
    build: Path,
    tables: Path | None,
) -> None:
    """Install packages, run a program that uses each under `gradspec watch`, and write what was found.

    An interrupted run goes on: of a package, a version and a program that were measured, the result is kept in the
    folder --build. The summary is of all packages that have a result there.

    It installs from PyPI, and runs what it installs.
    """
    from gradspec._record import RecordError, write
    from gradspec_lab.campaigns.packages import _prove, _run, _specs, _summary, _table

    with one_line_errors():
        every = _table.packages(tables or _table.TABLES)
        if unknown := set(names) - {one.name for one in every}:
            raise click.UsageError(f"there is no package {sorted(unknown)[0]!r} in the tables")
        asked = [one for one in every if one.name in names or not names]
        if is_list:
            click.echo("\n".join(f"{one.name}=={one.version}  {one.domain}" for one in asked))
            return
        if prove:
            failed = _prove.prove(asked, build, say=click.echo)
            raise SystemExit(1 if failed else 0)
        if is_specs:
            _specs.measure(asked, build, SPECS if out == OUT else out, fresh=fresh, say=click.echo)
            return
        _run.measure(asked, build, fresh=fresh, factor=factor, say=click.echo)
        results = [found for one in every if (found := _run.kept(one, build))]
        try:
            before = _summary.read_campaign(out)
        except RecordError:
            before = None
        content = _summary.summary(results, before)
        for line in _summary.differences(before, content) if before else ():
            click.echo(line)
        write(_summary.summary_text(content), out)
        click.echo(f"{content['counts']}: {out}")
