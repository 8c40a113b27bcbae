"""Single flight: of equal requests that are under way at once, one is made and the others wait for its reply."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future
from pathlib import Path

from gradspec.text.lm._model import Completion

try:
    import fcntl
except ImportError:  # Windows: single flight then holds within one process
    fcntl = None  # type: ignore[assignment]


class Flights:
    """The requests under way for one cache: within this process by futures, among processes by locks on a file.

    A lock is one byte of a file beside the cache, at an offset made from the request's key. The system frees it when
    its process dies, so a killed process holds nobody up.
    """

    def __init__(self, lock_file: Path | None) -> None:
        self._mutex = threading.Lock()
        self._under_way: dict[str, Future[Completion | None]] = {}
        self._file = -1
        if lock_file is not None and fcntl is not None:
            self._file = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def __del__(self) -> None:
        if getattr(self, "_file", -1) >= 0:
            os.close(self._file)

    def join(self, key: str) -> tuple[Future[Completion | None], bool]:
        """Return the future of this request and whether the caller is the one to fulfil it."""
        with self._mutex:
            future = self._under_way.get(key)
            if future is not None:
                return future, False
            future = self._under_way[key] = Future()
            return future, True

    def land(self, key: str, reply: Completion | BaseException | None) -> None:
        """Tell all who wait: the reply, the error, or None where the leader was stopped and another must lead."""
        with self._mutex:
            future = self._under_way.pop(key)
        if isinstance(reply, BaseException):
            future.set_exception(reply)
        else:
            future.set_result(reply)

    def lock(self, key: str) -> bool:
        """Take the request among processes; False if another process has it."""
        if self._file < 0:
            return True
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _offset(key))
        except (BlockingIOError, PermissionError):
            return False
        return True

    def unlock(self, key: str) -> None:
        """Give the request back."""
        if self._file >= 0:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _offset(key))


def _offset(key: str) -> int:
    return int(key[:15], 16)  # 60 bits, within what a file offset can say
