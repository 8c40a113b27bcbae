"""The commands that say what there is: `list` and `explain`. They read the files of ours, and import no torch."""

from __future__ import annotations

import click

from gradspec._registry._laws import listed_laws, select_laws
from gradspec.cli._shared import block, one_line_errors


@click.command("list", epilog=block("Examples", "gradspec list", "gradspec list my_package.specs"))
@click.argument("targets", nargs=-1, metavar="[TARGET...]")
def list_(targets: tuple[str, ...]) -> None:
    """List the specs that can be checked, and the laws.

    Without a TARGET: those of gradspec and of installed packages (entry points `gradspec.specs`).
    """
    from gradspec._registry._registry import listed_specs, resolve_all
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
