"""The command line: `gradspec check`, `audit`, `list`, `explain` and `show`."""

from gradspec.cli import _audit  # noqa: F401 - it enters its command
from gradspec.cli._commands import main

__all__ = ["main"]
