"""Records on disk: one form for all of them, written as a whole, and read only if they are as they were written."""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import json
import os
import re
import socket
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: The version of the JSON form. It moves when a reader of the old form would misread the new one.
SCHEMA = 2
CHECKSUM = "checksum"


class RecordError(ValueError):
    """A record that cannot be read; the message is one line for the user."""


def to_text(kind: str, content: Mapping[str, Any], *, rows: str = "") -> str:
    """Return a record as JSON, with its checksum.

    Args:
        kind: what is recorded, "report".
        content: plain data; keys keep their order.
        rows: the key of a list whose items are on one line each.

    Raises:
        UnicodeEncodeError: it holds text that is not valid Unicode.
    """
    record = {"schema": SCHEMA, "kind": kind, **json.loads(json.dumps(content))}
    record[CHECKSUM] = checksum(record)
    return _shown(record, rows) + "\n"


def from_text(text: str, kind: str, *others: str, where: str, again: str) -> dict[str, Any]:
    """Return what a record holds.

    Args:
        text: what `to_text` returned.
        kind: what it must be a record of.
        others: what it may be a record of instead; the field `kind` tells.
        where: how a message names it: its path.
        again: how it is made again, for the message.

    Raises:
        RecordError: it is not JSON, of another schema version or kind, or was edited after it was written.
    """
    try:
        record: Any = json.loads(text)
    except (ValueError, RecursionError) as error:  # also of a number of thousands of digits
        raise RecordError(f"{where} is not JSON ({error}): {again}") from None
    found = record.get("schema") if isinstance(record, dict) else None
    if found != SCHEMA or type(found) is not int:
        raise RecordError(f"{where} has schema version {found!r}, and this gradspec reads {SCHEMA}: {again}")
    if record.get("kind") not in (kind, *others):
        raise RecordError(f"{where} is a record of kind {record.get('kind')!r}, expected {kind!r}: {again}")
    try:
        intact = record.get(CHECKSUM) == checksum(record)
    except (UnicodeEncodeError, RecursionError, ValueError) as error:
        raise RecordError(f"{where} holds what no record holds ({type(error).__name__}): {again}") from None
    if not intact:
        raise RecordError(f"{where} has been edited since it was measured (its checksum differs): {again}")
    return dict(record)


def read(path: Path, kind: str, *others: str, again: str) -> dict[str, Any]:
    """Return what a file holds, as `from_text` does.

    Raises:
        RecordError: it cannot be read either.
    """
    if is_device(path):
        raise RecordError(f"{path} is a device or a pipe, and holds no record")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path} cannot be read ({error})") from None
    return from_text(text, kind, *others, where=str(path), again=again)


def write(text: str, path: Path) -> None:
    """Write a file, all or nothing: a reader sees the old one or the new one, whoever else writes.

    A link of the user's own is followed, and the mode of a file that is there stays. What a writer of this machine
    that has died left half-written is removed. A device or a pipe (`/dev/null`, `>(cat)`) is written to, and stays.

    Raises:
        OSError: the disk or the folder does not take it, or nobody reads the pipe.
        UnicodeEncodeError: it is not valid Unicode.
    """
    content = text.encode()
    if is_device(path):
        with open(opened(path), "wb") as file:
            file.write(content)
        return
    path = followed(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_partial(path)
    # A new file of its own name: no other writer has it open, and no link of that name is followed.
    descriptor, partial = tempfile.mkstemp(prefix=f"{_partial(path)}{os.getpid()}.", suffix=".partial", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(partial).chmod(_mode(path))
        Path(partial).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(partial).unlink()
        raise


def is_device(path: Path) -> bool:
    """Whether what stands at a path is a device or a pipe: it holds no record, and no file may take its place."""
    return path.exists() and not path.is_file() and not path.is_dir()


def opened(path: Path) -> int:
    """Return a descriptor that writes to a device or a pipe.

    Raises:
        OSError: nobody reads the pipe: to open it would wait for ever.
    """
    descriptor = os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))  # Windows has no named pipes of this kind
    os.set_blocking(descriptor, True)  # what is longer than the pipe waits for its reader
    return descriptor


def followed(path: Path) -> Path:
    """Return where a link at a path leads, if this user has made it: that of another one may lead anywhere.

    Raises:
        OSError: it leads to itself.
    """
    is_mine = path.is_symlink() and (os.name == "nt" or path.lstat().st_uid == os.geteuid())
    try:
        return path.resolve() if is_mine else path
    except RuntimeError:  # before Python 3.13: a link that leads to itself
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from None


def _mode(path: Path) -> int:
    """Return the mode of a file; of one that is not there, that of any new file: a temporary one is private."""
    with contextlib.suppress(OSError):
        return stat.S_IMODE(path.stat().st_mode)
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def _partial(path: Path) -> str:
    """Return how the partial files of a path begin that this machine writes; the number of the process follows."""
    return f".{path.name}.{re.sub(r'[^A-Za-z0-9-]', '-', socket.gethostname())}."


def _remove_partial(path: Path) -> None:
    """Remove the partial files of writers of this machine that have died."""
    for file in path.parent.glob(f"{glob.escape(_partial(path))}*.partial"):
        number = file.name.removeprefix(_partial(path)).partition(".")[0]
        if number.isdecimal() and not _is_alive(int(number)):
            with contextlib.suppress(OSError):
                file.unlink()


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # somebody else's
    return True


#: How many characters of flat data are on one line.
_SHORT = 100


def _shown(value: Any, rows: str = "", indent: str = "", *, in_lines: bool = False) -> str:
    """Return plain data as JSON: on one line each list of scalars, each flat item of a list, what is short, `rows`.

    So a difference can be read.
    """
    inner = indent + " "
    if isinstance(value, dict) and value and not (_is_flat(value) and len(json.dumps(value)) <= _SHORT):
        shown = {key: _shown(item, "", inner, in_lines=key == rows) for key, item in value.items()}
        lines = [f"{json.dumps(key, ensure_ascii=False)}: {text}" for key, text in shown.items()]
        return "{" + ",".join(f"\n{inner}{line}" for line in lines) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        row = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
        lines = [row(item) if in_lines or _is_flat(item) else _shown(item, "", inner) for item in value]
        return "[" + ",".join(f"\n{inner}{line}" for line in lines) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False)


def _is_flat(item: Any) -> bool:
    return isinstance(item, dict) and not any(isinstance(one, dict | list) for one in item.values())


def checksum(record: Mapping[str, Any]) -> str:
    """Return the hash of all that a record holds; it says nothing of who measured."""
    plain = json.dumps({k: v for k, v in record.items() if k != CHECKSUM}, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(plain.encode()).hexdigest()[:16]
