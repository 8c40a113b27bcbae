"""The first lines of a watch: they import nothing that a program does not."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradspec._watch._program import ProgramWatch

#: The variables by which a program is told that it is watched: where to write, and which packages are asked about.
FOLDER, ONLY = "GRADSPEC_WATCH", "GRADSPEC_WATCH_ONLY"
#: After how many calls a function is audited; 0 is the end.
AT = "GRADSPEC_WATCH_AT"


class Begun:
    """The watch of this process, once it has imported torch."""

    def __init__(self) -> None:
        self.watch: ProgramWatch | None = None
        self.is_over = False

    def end(self) -> None:
        """Audit what was seen, if anything could be; torch may be imported from now on without a watch."""
        self.is_over = True
        if self.watch is not None:
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

        from gradspec._watch._program import ProgramWatch

        only = tuple(filter(None, os.environ.get(ONLY, "").split(",")))
        begun.watch = ProgramWatch(Path(folder), only=only, at=int(os.environ.get(AT) or 0))
        begun.watch.start()
        if until_exit:
            atexit.register(begun.end)

    wrapt.register_post_import_hook(start, "torch")
    return begun
