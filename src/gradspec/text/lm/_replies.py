"""The SQLite file of a cache: opened, and replies as its rows hold them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gradspec.text.lm._errors import CacheError
from gradspec.text.lm._model import Completion, Usage

FORMAT = 1
#: Seconds that another program may hold the file for.
TIMEOUT = 60.0


@contextmanager
def in_our_words(path: str) -> Iterator[None]:
    """Raise `CacheError` for what SQLite, the system, or a row that is not ours raises."""
    try:
        yield
    except sqlite3.Error as error:
        raise CacheError(f"{path}: {error}; {_remedy(error)}") from error
    except OSError as error:
        raise CacheError(f"{path} cannot be used as a cache: {error.strerror or error}") from error


def _remedy(error: sqlite3.Error) -> str:
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:  # without what SQLite adds in the upper bits
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return f"another program has held the cache for more than {TIMEOUT:g} s; end it, or name another file"
        case sqlite3.SQLITE_FULL:
            return "free some space, or name a file on another disk"
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return "the file is damaged or no cache; delete it with its -wal and -shm, or name another file"
    return "name a file that can be read and written"


def connect(path: str, read_only: bool) -> sqlite3.Connection:
    """Return a connection to the file, made if it is not there and may be written.

    Raises:
        CacheError: it is of another format, or no cache.
    """
    with in_our_words(path):
        connection = _connect_read_only(path) if read_only else _connect(path)
        try:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, FORMAT):
                raise CacheError(f"{path} is a cache of format {version}; this version reads format {FORMAT}")
            if not read_only:
                _prepare(connection)
        except BaseException:
            connection.close()
            raise
    return connection


def _connect(path: str) -> sqlite3.Connection:
    try:
        return sqlite3.connect(path, timeout=TIMEOUT, isolation_level=None, check_same_thread=False)
    except sqlite3.OperationalError as error:
        remedy = "name a file in a folder that exists and that you may write to"
        raise CacheError(f"{path} cannot be opened as a cache: {error}; {remedy}") from None


def _connect_read_only(path: str) -> sqlite3.Connection:
    for query in ("mode=ro", "immutable=1"):  # the second where the folder cannot be written either
        connection = sqlite3.connect(
            f"{Path(path).as_uri()}?{query}", uri=True, timeout=TIMEOUT, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("SELECT 1 FROM replies LIMIT 1")
        except sqlite3.OperationalError as error:
            connection.close()
            problem = error
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise CacheError(f"{path} cannot be read as a cache: {problem}")


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")  # readers do not wait for a writer
    connection.execute("PRAGMA synchronous = NORMAL")  # what is committed outlives the process, at no fsync a reply
    connection.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, request TEXT, reply TEXT) STRICT")
    connection.execute("CREATE TABLE IF NOT EXISTS spent (name TEXT PRIMARY KEY, calls INTEGER, tokens INTEGER) STRICT")
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def to_json(reply: Completion) -> str:
    """Return a reply as its row holds it."""
    usage = None if reply.usage is None else [reply.usage.prompt_tokens, reply.usage.completion_tokens]
    said = {"text": reply.text, "usage": usage, "finish_reason": reply.finish_reason}
    return json.dumps(said | {name: word for name, word in (("model", reply.model), ("id", reply.id)) if word})


def from_json(text: str) -> Completion:
    """Return the reply of a row.

    Raises:
        ValueError: the row does not hold one.
    """
    try:
        data = json.loads(text)
        usage = data["usage"] and Usage(prompt_tokens=data["usage"][0], completion_tokens=data["usage"][1])
        return Completion(
            text=data["text"],
            usage=usage,
            finish_reason=data["finish_reason"],
            cached=True,
            model=data.get("model"),
            id=data.get("id"),
        )
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"a row that holds no reply ({type(error).__name__}): {text!r:.80}") from error
