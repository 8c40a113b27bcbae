"""The group of commands, and the commands that are in it."""

from __future__ import annotations

import click

from gradspec import __version__
from gradspec.cli._audit import audit
from gradspec.cli._check import check
from gradspec.cli._commands import explain, list_, show
from gradspec.cli._events import events
from gradspec.cli._init import init
from gradspec.cli._merge import merge
from gradspec.cli._selftest import selftest
from gradspec.cli._shared import Commands, block


@click.group(
    cls=Commands,
    commands=(check, audit, init, selftest, list_, explain, show, merge, events),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=block("Examples", "gradspec check gradspec.functions", "gradspec list", "gradspec explain vjp"),
)
@click.version_option(__version__, prog_name="gradspec")
def main() -> None:
    """Hold custom autograd functions to the laws that their specs promise."""
