"""The command line: `gradspec check`, `audit`, `selftest`, `list`, `explain`, `show`, `merge` and `events`."""

from gradspec.cli._main import main

__all__ = ["main"]
