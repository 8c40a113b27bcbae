"""The command `gradspec`, and where each of its commands is."""

from __future__ import annotations

import click

from gradspec import __version__
from gradspec.cli._group import Commands


@click.group(
    cls=Commands,
    homes={
        "check": "gradspec.cli._check:check",
        "audit": "gradspec.cli._audit:audit",
        "watch": "gradspec.cli._watch:watch",
        "init": "gradspec.cli._init:init",
        "list": "gradspec.cli._list:list_",
        "explain": "gradspec.cli._list:explain",
        "show": "gradspec.cli._show:show",
        "merge": "gradspec.cli._merge:merge",
        "events": "gradspec.cli._events:events",
    },
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nExamples:\n  gradspec check gradspec.functions\n  gradspec list\n  gradspec explain vjp",
)
@click.version_option(__version__, prog_name="gradspec")
def main() -> None:
    """Check custom autograd functions against the laws of their specs."""
