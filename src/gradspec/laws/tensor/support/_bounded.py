"""A call in which something stands in for something else, or of lower precision: a loop in it may have no end then."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

#: How many times as many operations a call in lower precision may take.
_TIMES = 8
#: How many it may take in any case: a solver that does not get there stops after so many rounds.
_LEAST = 30_000


class Bounded(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types here
    """While it is entered, no more than some operations of torch run, and none behind a result that is too large."""

    def __init__(self, most: int = sys.maxsize, *, most_elements: int = sys.maxsize, why: str = "") -> None:
        """Take how many run at most, of how many elements, and what is said where one more is asked for."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.most, self.most_elements, self.why = most, most_elements, why
        #: How many have run, and how many elements the largest result had.
        self.count = self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation.

        Raises:
            RuntimeError: it is one too many, or behind a result that is too large.
        """
        self.count += 1
        self._check()
        if self.is_over:
            raise RuntimeError(f"more than {self.most} operations{self.why}")
        is_anew = not args or not isinstance(args[0], Tensor)
        if self.most_elements < sys.maxsize and is_anew and any(a.name == "device" for a in func._schema.arguments):
            self._note(func(*args, **{**(kwargs or {}), "device": "meta"}))  # asks for no memory
            self._check()
        made = func(*args, **(kwargs or {}))
        self._note(made)
        return made

    def _note(self, made: Any) -> None:
        if isinstance(made, Tensor):
            self.elements = max(self.elements, made.numel())

    def _check(self) -> None:
        if self.elements > self.most_elements:
            raise RuntimeError(f"a result of {self.elements} elements is too large")

    @property
    def is_over(self) -> bool:
        """Whether one more was asked for, or one behind a result that is too large."""
        return self.count > self.most or self.elements > self.most_elements


def bound_by(call: Callable[[], object]) -> Callable[[], AbstractContextManager[Bounded | None]]:
    """Return what bounds other calls by the operations of one, as many times as a sound one never takes.

    Nothing does where the call raises, or a dispatch mode is in its way.
    """
    counted = Bounded()
    try:
        with counted:
            call()
    except Exception:
        return nullcontext
    why = f", where the call takes {counted.count} in its own dtype: an iteration without an end"
    return lambda: Bounded(max(_LEAST, _TIMES * counted.count), why=why)
