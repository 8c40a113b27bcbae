"""The command line: `gradspec check`, `audit`, `init`, `list`, `explain`, `show`, `merge` and `events`."""

from gradspec.cli._main import main

__all__ = ["main"]
