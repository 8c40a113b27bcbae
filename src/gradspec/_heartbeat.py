"""Signs from a child process to its parent: a call has ended, or a law has found something and looks for its cause.

The parent may limit each call in place of all calls of an answer, and ask for what was found where the search for the
cause has ended the child.
"""

from __future__ import annotations

import mmap


class Heartbeat:
    """A number that a child counts up and its parent reads; made before the fork."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, 9)

    def beat(self) -> None:
        """Count one call, in the child."""
        self._page[:8] = (self.count + 1).to_bytes(8, "little")

    @property
    def count(self) -> int:
        """How many calls have ended."""
        return int.from_bytes(self._page[:8], "little")

    @property
    def has_found(self) -> bool:
        """Whether a law has found something since the last question."""
        return bool(self._page[8])

    @has_found.setter
    def has_found(self, found: bool) -> None:
        self._page[8] = int(found)


#: That of this process, if it is a child that answers questions.
_own: Heartbeat | None = None


def take(heartbeat: Heartbeat) -> None:
    """Let `beat` count here."""
    global _own
    _own = heartbeat


def beat() -> None:
    """Say that a call of the function, or its backward pass, has ended."""
    # Dynamo cannot trace a write to memory: it would break the graph, and the function be compiled in another form.
    if _own is not None and not _is_compiling():
        _own.beat()


def found() -> None:
    """Say that a law has found something: what comes is the search for its cause."""
    if _own is not None:
        _own.has_found = True


def _is_compiling() -> bool:
    import torch

    return torch.compiler.is_compiling()
