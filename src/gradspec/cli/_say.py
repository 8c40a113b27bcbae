"""How a command says anything: what others have written steers neither a terminal nor the service that keeps a log."""

from __future__ import annotations

import click

from gradspec._one_line import for_log


def say(text: str = "", *, nl: bool = True, err: bool = False) -> None:
    """Print a text to stdout, or to stderr."""
    click.echo(for_log(text), nl=nl, err=err)
