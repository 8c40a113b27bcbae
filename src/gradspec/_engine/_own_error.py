"""Whether an error was raised in gradspec's own code, and not in the function under test or in torch."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gradspec._finding import fault
from gradspec.law import Finding, shown

_HERE = Path(__file__).parents[1]
#: The rooms that call functions, and are none.
_ROOMS = tuple(_HERE / room for room in ("_audit", "_engine", "laws"))
#: What an expression of Python raises by itself, and what torch raises of a tensor of a kind that an operation lacks.
#: Others come of what a function returns: a call whose arguments do not fit raises a TypeError in the line of the
#: caller, an output of too few elements an IndexError, and most of what torch finds wrong is a RuntimeError.
_KINDS = (AssertionError, AttributeError, KeyError, NameError, NotImplementedError, ZeroDivisionError)


def own_place(error: BaseException) -> str:
    """Return the file and line of gradspec that raised an error; empty where another one did."""
    frames = traceback.extract_tb(error.__traceback__)
    path = Path(frames[-1].filename) if frames else Path()
    if not isinstance(error, _KINDS) or not any(path.is_relative_to(room) for room in _ROOMS):
        return ""
    return f"{path.relative_to(_HERE)}:{frames[-1].lineno}"


def shows_in_a_traceback(function: Callable[..., Any]) -> bool:
    """Return whether a call of a function leaves a frame of its own: one in C raises in the line of its caller."""
    is_wrapped = str(getattr(function, "__module__", "")).startswith("gradspec._audit")
    return (inspect.isfunction(function) or inspect.ismethod(function)) and not is_wrapped


def own_error(error: BaseException) -> Finding:
    """Return the finding that gradspec raised an error, which says nothing of the function."""
    return fault(
        f"gradspec itself raised {shown(error)} ({own_place(error)})",
        of="gradspec",
        likely="a defect of gradspec, which does not know what the function returned: please report it with this call",
        details={"own": own_place(error), "stack": innermost(error)},
    )


def innermost(error: BaseException) -> str:
    """Return the innermost three calls of an error, files without their folders."""
    frames = reversed(traceback.extract_tb(error.__traceback__)[-3:])
    return "\n".join(f"{frame.name}, {Path(frame.filename).name}:{frame.lineno}" for frame in frames)
