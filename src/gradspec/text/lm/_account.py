"""The account of what was spent: in this process, or in the file of a cache, which outlives the process."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

#: Raises where calls and tokens so far do not allow for more.
Allowed = Callable[[int, int], None]


class Account(Protocol):
    """Calls and tokens, changed by one at a time."""

    def read(self) -> tuple[int, int]:
        """Return the calls made and the tokens spent or reserved."""

    def add(self, calls: int, tokens: int, allowed: Allowed | None = None) -> None:
        """Add to both, unless `allowed(calls so far, tokens so far)` raises."""


class Memory:
    """An account that ends with the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls = self._tokens = 0

    def read(self) -> tuple[int, int]:
        """Return the calls and the tokens."""
        with self._lock:
            return self._calls, self._tokens

    def add(self, calls: int, tokens: int, allowed: Allowed | None = None) -> None:
        """Add to both, if it is allowed."""
        with self._lock:
            if allowed is not None:
                allowed(self._calls, self._tokens)
            self._calls += calls
            self._tokens += tokens


class Kept:
    """An account in a SQLite file, for all processes that name it.

    Args:
        name: Which of the accounts in the file.
        opened: Returns a block with the connection of this process, for one user at a time.
    """

    def __init__(self, name: str, opened: Callable[[], AbstractContextManager[sqlite3.Connection]]) -> None:
        self._name, self._opened = name, opened

    def read(self) -> tuple[int, int]:
        """Return the calls and the tokens."""
        with self._opened() as connection:
            return self._read(connection)

    def add(self, calls: int, tokens: int, allowed: Allowed | None = None) -> None:
        """Add to both, if it is allowed; no other process adds meanwhile."""
        with self._opened() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                made, spent = self._read(connection)
                if allowed is not None:
                    allowed(made, spent)
                row = (self._name, made + calls, spent + tokens)
                connection.execute("INSERT OR REPLACE INTO spent (name, calls, tokens) VALUES (?, ?, ?)", row)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # SQLite has rolled back by itself where the disk was full
                    connection.execute("ROLLBACK")
                raise

    def _read(self, connection: sqlite3.Connection) -> tuple[int, int]:
        query = "SELECT calls, tokens FROM spent WHERE name = ?"
        try:
            row = connection.execute(query, (self._name,)).fetchone()
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise  # what cannot be read is not nothing
            return 0, 0  # a file that is only replayed, of a version that kept no accounts
        return (0, 0) if row is None else (int(row[0]), int(row[1]))
