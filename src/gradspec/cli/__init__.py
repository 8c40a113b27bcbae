"""The command line: `gradspec check`, `list`, `explain` and `show`."""

from gradspec.cli._commands import main

__all__ = ["main"]
