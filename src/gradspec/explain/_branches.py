"""Which lines run: what goes another way through branches is another computation, and not the same one mended."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from gradspec.laws.tensor.support._diagnosis import quietly


def lines_of(run: Callable[[], object], module: str) -> frozenset[tuple[str, int]]:
    """Return the files and lines of a module that a call runs."""
    seen: set[tuple[str, int]] = set()

    def look(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_globals.get("__name__") != module:
            return None
        if event == "line":
            seen.add((frame.f_code.co_filename, frame.f_lineno))
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        quietly(run)
    finally:
        sys.settrace(before)
    return frozenset(seen)
