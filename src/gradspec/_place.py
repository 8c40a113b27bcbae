"""Where an error was raised, in code that is neither torch's nor of what calls it here."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from traceback import walk_tb
from types import FrameType

_OURS = Path(__file__).parent
#: Rooms of ours with code that is checked as a user's is.
_CHECKED = tuple(_OURS / room for room in ("functions", "nn", "operators"))


#: Python's own library, and the folders in it where packages are installed.
_STANDARD = Path(sysconfig.get_path("stdlib"))
_INSTALLED = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")} | {
    _STANDARD / "site-packages",
    _STANDARD / "dist-packages",
}


#: The methods of a mode of torch that sees a call on its way.
_MODES = ("__torch_function__", "__torch_dispatch__")


def place_of(error: BaseException) -> str:
    """Return the innermost line of the code under test that an error passed, as "FILE:LINE, in FUNCTION"."""
    place = ""
    for frame, line in walk_tb(error.__traceback__):
        if is_under_test(frame.f_code.co_filename):
            place = f"{Path(frame.f_code.co_filename).name}:{line}, in {frame.f_code.co_name}"
    return place


def calling_line() -> str:
    """Return the innermost line of the code under test that calls this, as "FILE:LINE"; empty if there is none."""
    frame = calling_frame()
    return "" if frame is None else f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def calling_frame() -> FrameType | None:
    """Return the innermost frame of the code under test that calls this; None where what checks it calls torch."""
    frame: FrameType | None = sys._getframe(1)
    is_behind = False
    while frame is not None and not is_under_test(file := frame.f_code.co_filename):
        is_mode = frame.f_code.co_name in _MODES
        if is_behind and not is_mode and is_of_gradspec(file):
            return None
        is_behind |= is_mode
        frame = frame.f_back
    return frame


def is_under_test(filename: str) -> bool:
    """Return whether a file is neither torch's nor Python's own, nor of what checks it."""
    path = Path(filename)
    if filename.startswith("<") or any(path.is_relative_to(room) for room in _torch()):
        return False
    if path.is_relative_to(_STANDARD) and not any(path.is_relative_to(room) for room in _INSTALLED):
        return False
    return not path.is_relative_to(_OURS) or any(path.is_relative_to(room) for room in _CHECKED)


def is_of_gradspec(filename: str) -> bool:
    """Return whether a file is one of what checks code."""
    return Path(filename).is_relative_to(_OURS) and not is_under_test(filename)


def _torch() -> list[Path]:
    module = sys.modules.get("torch")
    return [Path(module.__file__).parent] if module is not None and module.__file__ else []
