"""Run the text of a program twice, with our functions and with their references by construction, and compare.

A failure prints the text. `python tests/fuzz/replay.py SEED` prints it too, with what both make of it.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.programs import source
from gradspec.functions import FUNCTIONS
from gradspec.laws.tensor.support._reference import reference

BANK = torch.linspace(-1, 1, 20, dtype=torch.float64).reshape(5, 4)
OURS = SimpleNamespace(**{spec.name: spec.function for spec in FUNCTIONS})
THEIRS = SimpleNamespace(**{spec.name: reference(spec) for spec in FUNCTIONS})
#: What a spec declares: the output of a scaled gradient is a view, which torch lets nobody change in place.
DECLARED = "This view was created inside a custom Function"
#: What the reference need not notice: ours saves x, for a second derivative and for the move of a bank.
CHANGED = "modified by an inplace operation"
#: What one of ours need not notice: it saves nothing, where the reference saves a factor, so that nothing is freed.
FREED = "a second time"
#: Above it a program is chaotic: rounding has been multiplied by its derivatives.
LARGE = 1e6
#: How many units of rounding: a program has no more than ten steps, each of at most a dozen terms, and two derivatives.
UNITS = 10 * 12 * 3


def numbers(seed: int) -> Tensor:
    """Return a matrix of numbers between -1 and 1."""
    return torch.rand(3, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2 - 1


def run(text: str, functions: Any) -> list[Any] | Exception:
    """Return what a program computed, or what it raised."""
    names: dict[str, Any] = {"torch": torch, "numbers": numbers, "BANK": BANK}
    exec(text, names)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the grad of a value that is no leaf
            return list(names["program"](functions))
    except Exception as error:
        return error


def kind(error: Any) -> str:
    """Return what an error is about."""
    said = str(error)
    for topic in ("a second time", "modified by an inplace", "does not require grad", "is a view", "leaf Variable"):
        if topic in said:
            return f"{type(error).__name__}: {topic}"
    return f"{type(error).__name__}: {said[:60]}"


def difference(seed: int, counts: Counter[str] | None = None, functions: Any = OURS) -> str:
    """Return in which way the program of a seed differs; empty if it does not."""
    text = source(seed)
    ours, theirs = run(text, functions), run(text, THEIRS)
    if counts is not None:
        counts[_allowed(ours, theirs) or (kind(theirs) if isinstance(theirs, Exception) else "values")] += 1
    said = "" if _allowed(ours, theirs) else _difference(ours, theirs)
    return f"program {seed}: {said}\n{text}" if said else ""


def _allowed(ours: Any, theirs: Any) -> str:
    """Return which difference between the two is declared; empty if none is."""
    if isinstance(ours, Exception) and DECLARED in str(ours):
        return "a change in place of a view is refused, as declared"
    if isinstance(ours, Exception) and CHANGED in str(ours) and CHANGED not in str(theirs):
        return "a change in place of what ours has saved"
    if isinstance(theirs, Exception) and FREED in str(theirs) and not isinstance(ours, Exception):
        return "a freed graph of which ours needed nothing"
    return ""


def _difference(ours: Any, theirs: Any) -> str:
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        same = isinstance(ours, Exception) and isinstance(theirs, Exception) and kind(ours) == kind(theirs)
        return "" if same else f"ours gave {_shown(ours)}, the reference {_shown(theirs)}"
    if len(ours) != len(theirs):
        return f"{len(ours)} values were seen, and {len(theirs)} of the reference"
    largest = max((float(t.detach().abs().max()) for t in theirs if t is not None), default=0.0)
    allowed = UNITS * torch.finfo(torch.float64).eps * max(1.0, largest)
    for place, (y, r) in enumerate(zip(ours, theirs, strict=True)):
        if y is None or r is None:
            other = r if y is None else y
            if other is not None and bool(other.any()):
                return f"value {place} is {y}, expected {r}"
        elif largest < LARGE and not bool(((y - r).abs() <= allowed).all()):
            return f"value {place} is off by {float((y - r).detach().abs().max()):.3g}, more than {allowed:.3g}"
    return ""


def _shown(found: Any) -> str:
    return repr(found) if isinstance(found, Exception) else f"{len(found)} values"


if __name__ == "__main__":
    print(source(int(sys.argv[1])), difference(int(sys.argv[1])) or "no difference")
