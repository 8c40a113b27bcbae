"""The command line: `gradspec check`, `audit`, `selftest`, `list`, `explain` and `show`."""

from gradspec.cli._main import main

__all__ = ["main"]
