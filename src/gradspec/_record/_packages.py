"""Classify a top-level package: the standard library, an installed version, or the user's own source."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import re
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder
from pathlib import Path
from typing import NamedTuple

#: The direct dependencies of gradspec, for a source tree that no distribution describes.
REQUIRED = ("click", "numpy", "rich", "sympy", "torch", "wrapt")


class Found(NamedTuple):
    """A module as files."""

    #: None for a namespace package.
    file: Path | None
    #: Where the modules of a package lie; empty for one that is not a package.
    folders: tuple[Path, ...] = ()

    @property
    def place(self) -> Path | None:
        """The folder of a package, or the file of a module."""
        return self.folders[0] if self.folders else self.file


def find_top(name: str, folders: Iterable[Path] = ()) -> Found | None:
    """Return a top-level module without importing it; `folders` are searched before `sys.path`."""
    try:
        if (found := PathFinder.find_spec(name, [*map(str, folders), *sys.path])) is not None:
            return _as_files(found)
        for finder in sys.meta_path:  # an editable install may bring a finder of its own
            if (found := finder.find_spec(name, None)) is not None and found.origin not in ("built-in", "frozen"):
                return _as_files(found)
    except Exception:  # whatever the finder of somebody else raises
        return None
    return None


def _as_files(found: ModuleSpec) -> Found:
    file = Path(found.origin).resolve() if found.origin and found.has_location else None
    return Found(file, tuple(Path(place).resolve() for place in found.submodule_search_locations or ()))


_within: dict[tuple[tuple[Path, ...], str], tuple[list[int], Found]] = {}


def find_within(folders: tuple[Path, ...], name: str) -> Found | None:
    """Return the module of a package, which lies in these folders; remembered until an entry of a folder changes."""
    try:
        stamps = [folder.stat().st_mtime_ns for folder in folders]
    except OSError:
        return None
    known = _within.get((folders, name))
    if known is not None and known[0] == stamps:
        return known[1]
    found = _find_within(folders, name)
    if found is not None and found.file is not None:
        _within[folders, name] = stamps, found
    return found


def _find_within(folders: tuple[Path, ...], name: str) -> Found | None:
    for folder in folders:
        inner = folder / name
        if (inner / "__init__.py").is_file():
            return Found(inner / "__init__.py", (inner,))
        for suffix in (*EXTENSION_SUFFIXES, ".py"):
            if (file := folder / f"{name}{suffix}").is_file():
                return Found(file)
    inside = tuple(folder / name for folder in folders if (folder / name).is_dir())
    return Found(None, inside) if inside else None


def normal(name: str) -> str:
    """Return the name of a distribution in its normal form."""
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def dependencies() -> tuple[str, ...]:
    """Return the names of the distributions that gradspec depends on, directly or not."""
    found, queue = set[str](), list(REQUIRED)
    while queue:
        name = normal(queue.pop())
        if name in found:
            continue
        found.add(name)
        try:
            lines = importlib.metadata.requires(name) or ()
        except importlib.metadata.PackageNotFoundError:
            continue  # a build in place, or a dependency of another system
        named = (re.match(r"[\w.-]+", line) for line in lines if "extra ==" not in line)
        queue += [match[0] for match in named if match]
    return tuple(sorted(found))


@cache
def _owners(path: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the distributions by the top-level names that they install; asked again when `sys.path` changes."""
    found: dict[str, list[str]] = {}
    for folder in path:
        for top, owners in _owners_in(folder or str(Path.cwd())).items():
            found.setdefault(top, []).extend(owners)
    return found


@cache
def _owners_in(folder: str) -> dict[str, list[str]]:
    """Return those of one folder of `sys.path`."""
    # As `importlib.metadata.packages_distributions` finds them, which parses every path of every RECORD.
    found: dict[str, list[str]] = {}
    for distribution in importlib.metadata.distributions(path=[folder]):
        named = re.search(r"^Name: *(\S+)", distribution.read_text("METADATA") or "", re.MULTILINE)
        listed = distribution.read_text("top_level.txt") or distribution.read_text("RECORD") or ""
        tops = {re.split(r"[/,.]", line, maxsplit=1)[0] for line in listed.splitlines()}
        if named is not None:
            for top in tops:
                found.setdefault(top, []).append(normal(named[1]))
    return found


@cache
def _tops_of_dependencies(path: tuple[str, ...]) -> frozenset[str]:
    names = set(dependencies())
    owned = {top for top, owners in _owners(path).items() if not names.isdisjoint(owners)}
    return frozenset(owned | {name.replace("-", "_") for name in names})


def is_beneath(top: str) -> bool:
    """Whether a top-level name counts by a version of the environment, wherever it lies: what gradspec runs on."""
    return top in sys.stdlib_module_names or top in _tops_of_dependencies(tuple(sys.path))


def owners_of(top: str, place: Path) -> list[str]:
    """Return the distributions that installed a package at a place; none for one on `sys.path` or in editable form."""
    return [
        name
        for name in _owners(tuple(sys.path)).get(top, ())
        if not _is_editable(name) and place.is_relative_to(_folder_of(name))
    ]


@cache
def _folder_of(distribution: str) -> Path:
    return Path(str(importlib.metadata.distribution(distribution).locate_file(""))).resolve()


@cache
def _is_editable(distribution: str) -> bool:
    """Whether a distribution is installed in editable form, as PEP 610 notes it."""
    try:
        text = importlib.metadata.distribution(distribution).read_text("direct_url.json")
        return bool(text and json.loads(text)["dir_info"]["editable"])
    except (importlib.metadata.PackageNotFoundError, ValueError, LookupError, TypeError):
        return False


def version_of(name: str) -> str:
    """Return the version of a distribution; of a package that none describes, that of its file `version.py`."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
    found = find_top(name.replace("-", "_"))
    place = found.place if found else None
    for file in ("version.py", "_version.py", "__init__.py"):
        if place is not None and (place / file).is_file():
            return (place / file).read_text(encoding="utf-8", errors="replace")
    return ""


@cache
def versions() -> Sequence[str]:
    """Return the versions of Python and of all that gradspec depends on, a line each, without importing any of it."""
    found = ((name, version_of(name)) for name in dependencies())
    return (f"python {platform.python_version()}", *(f"{name} {version}" for name, version in found if version))
