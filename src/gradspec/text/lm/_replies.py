"""The SQLite file of a cache: opened, and replies as its rows hold them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from gradspec.text.lm._model import Completion, Usage

FORMAT = 1


def connect(path: str, read_only: bool) -> sqlite3.Connection:
    """Return a connection to the file, made if it is not there and may be written.

    Raises:
        ValueError: it is of another format, or no cache.
    """
    if read_only:
        connection = _connect_read_only(path)
    else:
        try:
            connection = sqlite3.connect(path, timeout=60.0, isolation_level=None, check_same_thread=False)
        except sqlite3.OperationalError as error:
            raise ValueError(
                f"{path} cannot be opened as a cache: {error}; name a file in a folder that exists"
            ) from None
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, FORMAT):
            raise ValueError(f"{path} is a cache of format {version}; this version reads format {FORMAT}")
        if not read_only:
            _prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _connect_read_only(path: str) -> sqlite3.Connection:
    for query in ("mode=ro", "immutable=1"):  # the second where the folder cannot be written either
        connection = sqlite3.connect(
            f"{Path(path).as_uri()}?{query}", uri=True, timeout=60.0, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("SELECT 1 FROM replies LIMIT 1")
        except sqlite3.OperationalError as error:
            connection.close()
            problem = error
        else:
            return connection
    raise ValueError(f"{path} cannot be read as a cache: {problem}")


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
    """Return the reply of a row."""
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
