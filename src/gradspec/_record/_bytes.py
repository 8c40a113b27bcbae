"""The bytes of files, and a substitute for files that are too large."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from gradspec._record._packages import owners_of, version_of

#: How many files of one package are read; one of more counts by sizes and times.
MANY = 3_000
#: How many bytes are read; files beyond these count by sizes and times.
LARGE = 256 * 2**20
_NATIVE = (".so", ".pyd", ".dylib", ".cu", ".cuh", ".c", ".cc", ".cpp", ".h", ".hpp", ".metal", *EXTENSION_SUFFIXES)
_PASSED_OVER = ("__pycache__", "node_modules")


def short(text: str) -> str:
    """Return the hash of a text."""
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:16]


def data_of(package: Path) -> Iterator[Path]:
    return (file for file in files_of(package) if file.suffix != ".py" and not _is_record(file))


def native_in(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        yield from (Path(entry.path) for entry in entries if entry.name.endswith(_NATIVE) and entry.is_file())


def _is_record(file: Path) -> bool:
    """Whether a file is a record: what was measured is not what it was measured of."""
    try:
        with file.open("rb") as opened:
            return file.suffix == ".json" and opened.read(12) == b'{\n "schema":'
    except OSError:
        return True


def files_of(folder: Path, most: int = MANY) -> list[Path]:
    """Return the files below a folder, at most one more than `most`."""
    found: list[Path] = []
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _PASSED_OVER and not name.startswith(".")]
        found += [Path(where, name) for name in names if not name.endswith((".pyc", ".partial"))]
        if len(found) > most:
            return found[: most + 1]
    return found


def looks_of_many(place: Path) -> str:
    """Return the hash of sizes and times of a package of many files; empty for one whose bytes are read."""
    if not (place / "__init__.py").is_file() or len(files_of(place)) <= MANY:
        return ""
    files = files_of(place, 20 * MANY)
    return short("\n".join(sorted(f"{file.relative_to(place)} {look(file)}" for file in files)))


def look(file: Path) -> str:
    """Return what a file looks like from outside."""
    try:
        stat = file.stat()
    except OSError:
        return "is missing"
    return f"{stat.st_mtime_ns} {stat.st_size}"


def digest(file: Path) -> str:
    """Return the hash of the bytes of a file."""
    return _digest(file, look(file))


@lru_cache(maxsize=50_000)
def _digest(file: Path, _look: str) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return "is missing"


def key_of_gradspec(place: Path) -> tuple[str, list[Path]]:
    """Return what gradspec counts as: its version if it is installed, else the bytes of all its files, and these."""
    if owners_of("gradspec", place):
        return f"gradspec {version_of('gradspec')}", []
    files = sorted(files_of(place))
    return f"gradspec {short(' '.join(f'{file.relative_to(place)} {digest(file)}' for file in files))}", files
