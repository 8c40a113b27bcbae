"""A call of a function in which something stands in for something else: a loop in it may have no end then."""

from __future__ import annotations

import sys
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode


class Bounded(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types here
    """While it is entered, no more than some operations of torch run."""

    def __init__(self, most: int = sys.maxsize) -> None:
        """Take how many run at most."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.most = most
        #: How many have run.
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation.

        Raises:
            RuntimeError: it is one too many.
        """
        self.count += 1
        if self.count > self.most:
            raise RuntimeError(f"more than {self.most} operations")
        return func(*args, **(kwargs or {}))
