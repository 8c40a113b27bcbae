"""A sign of life from a child process to its parent, which then limits each call, not all calls of an answer."""

from __future__ import annotations

import mmap


class Heartbeat:
    """A number that a child counts up and its parent reads; made before the fork."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, 8)

    def beat(self) -> None:
        """Count one call, in the child."""
        self._page[:8] = (self.count + 1).to_bytes(8, "little")

    @property
    def count(self) -> int:
        """How many calls have ended."""
        return int.from_bytes(self._page[:8], "little")


#: That of this process, if its parent has a limit on each call.
_own: Heartbeat | None = None


def take(heartbeat: Heartbeat | None) -> None:
    """Let `beat` count here."""
    global _own
    _own = heartbeat


def beat() -> None:
    """Say that a call of the function, or its backward pass, has ended."""
    # Dynamo cannot trace a write to memory: it would break the graph, and the function be compiled in another form.
    if _own is not None and not _is_compiling():
        _own.beat()


def _is_compiling() -> bool:
    import torch

    return torch.compiler.is_compiling()
