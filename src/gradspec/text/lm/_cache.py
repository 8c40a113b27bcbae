"""Replies kept in SQLite, under the whole request."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

from gradspec.text.lm._account import Kept
from gradspec.text.lm._errors import CacheError, CacheMissError, ModelTimeoutError
from gradspec.text.lm._model import Completion
from gradspec.text.lm._replies import connect, from_json, in_our_words, to_json
from gradspec.text.lm._request import Request, key_of
from gradspec.text.lm._single_flight import Flights
from gradspec.text.lm._steps import Join, Sleep, Steps

#: Seconds between two looks for the reply that another process is getting.
LOOK_AGAIN = 0.02

_single_flights: weakref.WeakValueDictionary[tuple[int, str], Flights] = weakref.WeakValueDictionary()
_single_flight_lock = threading.Lock()


class Cache:
    """Keep every reply in one SQLite file, and pay for no request twice.

    A reply is kept under its whole request: who was asked, every message, every option, the schema, the sample, in
    canonical JSON; never a key. It is there as soon as it was received, so a run that is killed and started again pays
    only for the rest. Of equal requests under way at once, in threads, tasks or processes, one is made.

    Args:
        path: The file, made if it is not there; `":memory:"` for a cache that ends with the process.
        mode: `read_write`; `replay` calls nothing, and a request without a reply raises `CacheMissError`;
            `refresh` makes every request, and its reply replaces the old one.

    Examples:
        >>> from gradspec.text.lm import Budget, Client, RuleModel
        >>> client = Client(RuleModel({"Paris": "France"}), cache=Cache(":memory:"), budget=Budget(calls=1))
        >>> client("Where is Paris?").cached, client("Where is Paris?").cached
        (False, True)
    """

    def __init__(
        self, path: str | os.PathLike[str], *, mode: Literal["read_write", "replay", "refresh"] = "read_write"
    ) -> None:
        if mode not in ("read_write", "replay", "refresh"):
            raise ValueError(f"mode is read_write, replay or refresh, not {mode!r}")
        self.path = path if path == ":memory:" else os.path.realpath(path)
        self.mode = mode
        if mode == "replay" and not Path(self.path).is_file():
            raise FileNotFoundError(f"there is no cache at {self.path} to replay; record one in the mode read_write")
        self._lock = threading.Lock()
        self._open: dict[int, tuple[sqlite3.Connection, Flights]] = {}
        self._here()

    def __repr__(self) -> str:
        return f"Cache({self.path!r}, mode={self.mode!r})"

    def __len__(self) -> int:
        """The number of replies."""
        with self._opened() as connection:
            return int(connection.execute("SELECT count(*) FROM replies").fetchone()[0])

    def close(self) -> None:
        """Close the file; the cache opens it again when it is next used."""
        opened = self._open.pop(os.getpid(), None)
        if opened is not None:
            with self._lock:
                opened[0].close()

    def get(self, request: str) -> Completion | None:
        """Return the reply kept under a canonical request, or None."""
        key = key_of(request)
        with self._opened() as connection:
            row = connection.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        try:
            return None if row is None else from_json(row[0])
        except ValueError as error:
            raise CacheError(f"{self.path} has under the key {key[:12]} {error}; delete the row or the file") from None

    def put(self, request: str, reply: Completion) -> None:
        """Keep a reply under a canonical request."""
        row = (key_of(request), request, to_json(reply))
        with self._opened() as connection:
            connection.execute("INSERT OR REPLACE INTO replies (key, request, reply) VALUES (?, ?, ?)", row)

    def account(self, name: str) -> Kept:
        """Return the account of that name in the file, for a `Budget`."""
        return Kept(name, self._opened)

    def through(self, request: Request, pay: Steps[Completion], until: float | None) -> Steps[Completion]:
        """Return the reply kept, or the one that another is getting, or run `pay` for it and keep that."""
        asked = request.canonical
        key = key_of(asked)
        look = self.mode != "refresh"
        found = self.get(asked) if look else None
        if found is not None:
            return found
        if self.mode == "replay":
            last = request.messages[-1].content
            raise CacheMissError(
                f"{self.path} has no reply to this request, and in the mode replay none is made; it ends with "
                f"{last[:200]!r} (key {key[:12]}). Record it in the mode read_write."
            )
        _, flights = self._here()
        while True:
            future, leads = flights.join(key)
            if leads:
                return (yield from self._lead(flights, asked, look, pay, until))
            reply: Completion | None = yield Join(future=future, until=until)
            if reply is not None:
                return replace(reply, cached=True)

    def _lead(
        self, flights: Flights, asked: str, look: bool, pay: Steps[Completion], until: float | None
    ) -> Steps[Completion]:
        key, locked = key_of(asked), False
        landed: Completion | Exception | None = None
        try:
            while not (locked := self._locked(flights, key)):
                if until is not None and time.monotonic() >= until:
                    raise ModelTimeoutError("another process did not get the reply to this request before the deadline")
                yield Sleep(seconds=LOOK_AGAIN)
            # Whoever had the lock before has kept its reply by now.
            found = self.get(asked) if look else None
            if found is None:
                found = yield from pay
                self._keep(asked, found)
            landed = found
            return found
        except Exception as error:
            landed = error
            raise
        finally:
            if locked:
                flights.unlock(key)
            flights.land(key, landed)

    def _keep(self, request: str, reply: Completion) -> None:
        """Keep a reply that is paid; where that fails, say so and lose nothing."""
        try:
            self.put(request, reply)
        except CacheError as error:
            warnings.warn(
                f"a reply was paid and is returned, and not kept; the same request is paid again: {error}", stacklevel=2
            )

    def _locked(self, flights: Flights, key: str) -> bool:
        with in_our_words(f"{self.path}.lock"):
            return flights.lock(key)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Give the connection of this process to one user at a time."""
        connection, _ = self._here()
        with self._lock, in_our_words(str(self.path)):
            yield connection

    def _here(self) -> tuple[sqlite3.Connection, Flights]:
        """Return what this process works with; a fork must share neither a connection nor a future."""
        opened = self._open.get(os.getpid())
        if opened is None:
            with self._lock:
                opened = self._open.get(os.getpid())
                if opened is None:
                    opened = self._open[os.getpid()] = (
                        connect(self.path, self.mode == "replay"),
                        # What makes no request needs no lock, and may lie where nothing can be written.
                        Flights(None) if self.mode == "replay" else _shared(self.path),
                    )
        return opened


def _shared(path: str) -> Flights:
    """Return the flights of a file: one for all caches of this process, since its file locks are the process's."""
    if path == ":memory:":
        return Flights(None)
    with _single_flight_lock:
        flights = _single_flights.get((os.getpid(), path))
        if flights is None:
            with in_our_words(f"{path}.lock"):
                flights = _single_flights[os.getpid(), path] = Flights(Path(f"{path}.lock"))
        return flights
