"""Where an optimization is, in a file that is whole at every moment."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

VERSION = 1
#: Where an object is: it tells two equal ones apart, and is another one in each process.
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def fingerprint(settings: dict[str, Any], data: Any) -> str:
    """Return a hash of what decides a run; it is the same in every process.

    Raises:
        TypeError: the data holds an object by which two sets of data cannot be told apart.

    Example:
        >>> fingerprint({"seed": 0}, [("2 + 2", "4")]) == fingerprint({"seed": 0}, [("2 + 2", {"4", "four"})])
        False
    """
    try:
        text = json.dumps([settings, data], sort_keys=True, default=plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"a checkpoint must know its data again: {error}") from error
    return hashlib.sha256(text.encode()).hexdigest()


def plain(thing: Any) -> Any:
    """Return what JSON cannot say in terms that it can, with no address and no order of hashes in it."""
    name = type(thing).__qualname__
    if isinstance(thing, set | frozenset):
        return [name, sorted(json.dumps(item, sort_keys=True, default=plain) for item in thing)]
    if is_dataclass(thing) and not isinstance(thing, type):
        return [name, {field.name: getattr(thing, field.name) for field in fields(thing)}]
    if isinstance(thing, Mapping):
        return [name, dict(thing)]
    if callable(getattr(thing, "tolist", None)):  # the repr of a long array leaves most of it out
        return [name, thing.tolist()]
    said = repr(thing)
    if ADDRESS.search(said):
        raise TypeError(
            f"{said} says nothing of what is in it; make {name} a dataclass, or give it a __repr__ that tells"
        )
    return [name, said]


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
        raise ValueError(f"{path} is not a checkpoint of an optimization; name another file") from None
    if version != VERSION:
        raise ValueError(f"{path} is a checkpoint of version {version}; this version reads version {VERSION}")
    if state.get("fingerprint") != made_for:
        raise ValueError(
            f"{path} is the checkpoint of another run: its data, parameters or settings differ; name another file, or "
            "delete it"
        )
    return dict(state)
