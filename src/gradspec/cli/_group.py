"""The group of commands: each is imported when it is asked for."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from gradspec._searches import skip_last_search
from gradspec.cli._say import say

#: The errors of a disk, or of a share of it, that takes no more.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class Commands(click.Group):
    """A click group that starts and exits quickly, and reports a failed write in one line.

    Args:
        homes: the commands in the order in which help lists them, each with its place, "package.module:name".
        options: those of `click.Group`.
    """

    def __init__(self, *, homes: Mapping[str, str], **options: Any) -> None:
        super().__init__(**options)
        self.homes = dict(homes)

    def list_commands(self, ctx: click.Context | None) -> list[str]:
        """Return the names of the commands."""
        return list(self.homes)

    def get_command(self, ctx: click.Context | None, cmd_name: str) -> click.Command | None:
        """Return a command, imported now; None for a name that none has."""
        if cmd_name not in self.homes:
            return None
        module, _, name = self.homes[cmd_name].partition(":")
        found: click.Command = getattr(import_module(module), name)
        return found

    def main(self, *args: Any, **kwargs: Any) -> Any:
        skip_last_search()
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python writes out the rest at its end
            say(f"Error: the output cannot be written ({error.strerror})", err=True)
            sys.exit(2)  # as for arguments that cannot be used
