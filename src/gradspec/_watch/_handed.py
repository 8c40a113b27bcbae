"""A function and its calls for another process: by import where that finds them, and by value otherwise.

A process that has used CUDA cannot fork: what it has seen is audited in a new one.
"""

from __future__ import annotations

import inspect
import pickle
import sys
from collections import ChainMap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar

from gradspec._watch._kept import Kept
from gradspec._watch._seen import Seen
from gradspec._watch._uses import MAIN

#: The file in the folder of a function that holds it and its calls.
HANDED = "function.pickle"
_WHY = "not-handed.txt"


def _made_again(kernel: Any) -> tuple[Any, ...]:
    """Return how to make a kernel of Triton again, which holds locks and what it has compiled."""
    kind: Callable[..., Any] = type(kernel)
    names = list(inspect.signature(kind).parameters)[1:]  # behind the function
    return partial(kind, kernel.fn, **{name: vars(kernel)[name] for name in names if name in vars(kernel)}), ()


def hand_over(seen: Seen, place: Path) -> bool:
    """Write a function and its calls to its folder, or why they cannot be written; return whether they were."""
    import cloudpickle  # where it is needed: this module is in each program that is watched

    kernels: Any = sys.modules.get("triton.runtime.jit")
    own = {} if kernels is None else {kernels.JITFunction: _made_again}

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
        dispatch_table: ClassVar = ChainMap(own, cloudpickle.Pickler.dispatch_table)

    try:
        with (place / HANDED).open("wb") as file:
            Pickler(file).dump((None if seen.is_operator else seen.target, seen.calls))
    except Exception as error:  # whatever the objects of the program raise
        (place / HANDED).unlink()
        why = " ".join(f"the program cannot hand it over: {type(error).__name__}: {error}".split())
        (place / _WHY).write_text(why, encoding="utf-8")
        return False
    (place / _WHY).unlink(missing_ok=True)
    return True


def why_not_handed(place: Path) -> str:
    """Return why the function of a folder was not written; empty if nobody tried, or it was."""
    return (place / _WHY).read_text(encoding="utf-8") if (place / _WHY).exists() else ""


def taken_over(place: Path) -> tuple[Any, list[Kept]] | None:
    """Return the function of a folder, or None for an operator, and its calls; None if they are not there."""
    if not (place / HANDED).exists():
        return None
    with (place / HANDED).open("rb") as file:
        target, calls = pickle.load(file)
    _be_main(target)
    return target, calls


def _be_main(target: Any) -> None:
    """Let the names that the functions of a script read be those of `__main__`, where a compiler looks for them."""
    for held in vars(target).values() if isinstance(target, type) else ():
        function = getattr(held, "__func__", held)
        if isinstance(function, FunctionType) and function.__module__ in MAIN:
            for name, value in function.__globals__.items():
                vars(sys.modules["__main__"]).setdefault(name, value)
