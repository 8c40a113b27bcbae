"""The findings of a child that gave no answer, or one that cannot be read."""

from __future__ import annotations

import pickle
import re
import signal
from typing import Any

from gradspec._engine._serving import _not_plain
from gradspec.law import LIMIT, Finding, Status, broken


def died(code: int, stack: str) -> Finding:
    """Return the finding that the child died.

    Args:
        code: its exit code, negative for a signal.
        stack: what faulthandler wrote.
    """
    if code < 0:
        return broken(
            f"the interpreter died of {signal.Signals(-code).name}",
            likely="an operation on memory that is not there: look for .data, data_ptr() and custom kernels",
            details={"stack": _innermost(stack)},
        )
    return broken(f"the function ended the interpreter, with exit code {code}", likely="os._exit() or sys.exit()")


def ran_out(passed: str) -> Finding:
    """Return the finding that a limit was passed, which says nothing about the function."""
    return Finding(
        status=Status.NOT_MEASURED,
        message=passed,
        likely="the function hangs, or it needs longer: then raise --time-limit, or `time_limit` in the profile",
        details={LIMIT: "time"},
    )


def read(come: bytes) -> Any:
    """Return an answer; where it cannot be unpickled, the finding that it cannot."""
    try:
        return pickle.loads(come)
    except Exception as error:
        return _not_plain(error)


def _innermost(text: str) -> str:
    """Return where a crash was: the innermost three calls of a stack of faulthandler, files without their folders."""
    frames = re.findall(r'File ".*?([^/"]+)", line (\d+) in (\S+)', text)
    return "\n".join(f"{name}, {file}:{line}" for file, line, name in frames[:3])
