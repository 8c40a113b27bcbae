"""Where an optimization is, in a file that is whole at every moment."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

VERSION = 1


def fingerprint(settings: dict[str, Any], data: Any) -> str:
    """Return a hash of what decides a run; of an object that JSON cannot say, its type counts.

    Example:
        >>> fingerprint({"seed": 0}, [("2 + 2", "4")]) == fingerprint({"seed": 1}, [("2 + 2", "4")])
        False
    """
    text = json.dumps([settings, data], sort_keys=True, default=lambda thing: type(thing).__qualname__)
    return hashlib.sha256(text.encode()).hexdigest()


def save(path: Path, state: dict[str, Any]) -> None:
    """Write a state so that a reader finds the one before or this one, whenever the process dies."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with beside.open("w", encoding="utf-8") as file:
            json.dump({"version": VERSION, **state}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def load(path: Path, made_for: str) -> dict[str, Any] | None:
    """Return the state in a file, or None if the file does not exist.

    Raises:
        ValueError: it is not a checkpoint, or one of another run.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        state = json.loads(text)
        version = state["version"]
    except (ValueError, TypeError, KeyError):
        raise ValueError(f"{path} is no checkpoint of an optimization; name another file") from None
    if version != VERSION:
        raise ValueError(f"{path} is a checkpoint of version {version}; this version reads version {VERSION}")
    if state.get("fingerprint") != made_for:
        raise ValueError(
            f"{path} is the checkpoint of another run: its data, parameters or settings differ; name another file, or "
            "delete it"
        )
    return dict(state)
