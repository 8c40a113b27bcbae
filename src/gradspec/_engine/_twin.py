"""The other side of a fork that a function under test makes: it ends where it would come back to what called it.

Else each later call of the check would be made by both sides, and forked again: twenty calls by a million processes.
"""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import Any


def end_where_it_comes_back() -> None:
    """End this process once a call of code that is not ours returns to us; hand it to `os.register_at_fork`.

    What the other side of a fork does meanwhile is its own: a worker that never comes back is left alone.
    """
    forks = sys._getframe(1)
    if _is_of(forks, "gradspec", "multiprocessing"):
        return  # they know which side they are on
    ours: FrameType | None = forks
    while ours is not None and not _is_of(ours, "gradspec"):
        ours = ours.f_back

    def end(frame: FrameType, event: str, _: Any) -> None:
        if event == "return" and frame.f_back is ours:
            os._exit(0)

    if ours is not None:
        sys.setprofile(end)


def _is_of(frame: FrameType, *packages: str) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in packages
