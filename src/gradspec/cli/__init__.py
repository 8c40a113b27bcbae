"""The command line: `gradspec check`, `audit`, `selftest`, `list`, `explain` and `show`."""

from gradspec.cli import _audit, _selftest  # noqa: F401 - they enter their commands
from gradspec.cli._commands import main

__all__ = ["main"]
