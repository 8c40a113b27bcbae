"""The first lines of a watch: they import nothing that a program does not."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from gradspec._watch._environment import AT, FOLDER, ONLY, SCOPES

if TYPE_CHECKING:
    from gradspec._watch._program import ProgramWatch


class Begun:
    """The watch of this process, once it has imported torch."""

    def __init__(self) -> None:
        self.watch: ProgramWatch | None = None
        self.is_over = False

    def end(self) -> None:
        """Audit what was seen, if anything could be; torch may be imported from now on without a watch."""
        is_over, self.is_over = self.is_over, True
        if self.watch is not None and not is_over:
            with contextlib.suppress(KeyboardInterrupt):  # the command audits the rest, or reports without it
                self.watch.end()


def begin(*, until_exit: bool = True) -> Begun | None:
    """Watch this process from the import of torch on, if its environment says so.

    Args:
        until_exit: whether the watch ends with the process; else the caller ends it.
    """
    folder = os.environ.get(FOLDER)
    if not folder:
        return None
    import wrapt

    begun = Begun()

    def start(_: Any) -> None:
        if begun.is_over:
            return
        import atexit
        from pathlib import Path

        from gradspec._scope import scopes_of
        from gradspec._watch._program import ProgramWatch

        only = tuple(filter(None, os.environ.get(ONLY, "").split(",")))
        # What ends last comes first: a package that empties its caches at exit does so behind the audits.
        last = (lambda: atexit.register(begun.end)) if until_exit else None
        how: Any = {"at": int(os.environ.get(AT) or 0), "on_first": last}
        how["scopes"] = scopes_of(filter(None, os.environ.get(SCOPES, "").split(",")))
        begun.watch = ProgramWatch(Path(folder), only=only, **how)
        begun.watch.start()
        if last:
            last()

    wrapt.register_post_import_hook(start, "torch")
    return begun
