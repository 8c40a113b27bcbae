"""The key of code: a hash of the files of the user's own packages that it reaches by imports.

A walk reads the `import` statements of each file and imports nothing. It ends at the standard library and at what
gradspec depends on, whose versions the provenance notes (a torch on PYTHONPATH is a version too), and at other
installed distributions, which count by their version. All else is bytes: the distribution that owns the roots, one in
editable form, files on `sys.path`. A package of more than `MANY` files counts by their sizes and times.

Beside each Python file count the other files of its package (data, native libraries, kernels); outside packages the
native ones. A module that is named only when the program runs (`importlib.import_module(name)`) is not followed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from gradspec._record._bytes import LARGE, data_of, digest, key_of_gradspec, look, looks_of_many, native_in, short
from gradspec._record._packages import Found, find_top, find_within, is_beneath, owners_of, version_of


@dataclass
class Reached:
    """The dependencies of the root modules."""

    #: The files whose bytes count.
    files: set[Path] = field(default_factory=set)
    #: Lines for all that counts otherwise: versions, large packages, gradspec.
    others: set[str] = field(default_factory=set)
    #: Roots that are nowhere.
    missing: set[str] = field(default_factory=set)
    #: Files that count and that are not among these: of gradspec.
    beneath: set[Path] = field(default_factory=set)

    def key(self) -> str:
        """Return the hash; it does not depend on where the files lie."""
        lines, total = list(self.others), 0
        for file in sorted(self.files, key=lambda file: (file.suffix != ".py", file)):
            total += file.stat().st_size if file.exists() else 0
            lines.append(f"{file.name} {digest(file) if total <= LARGE else look(file)}")
        return short("\n".join(sorted(lines)))

    def newest(self) -> float:
        """Return when the last of the files was changed, in seconds of the system's clock."""
        return max((file.stat().st_mtime for file in (*self.files, *self.beneath) if file.exists()), default=0.0)


def reach(roots: Sequence[str], folders: Iterable[Path] = ()) -> Reached:
    """Return what modules or files depend on.

    Args:
        roots: import paths, or paths of files that end in .py; a name behind a colon does not count.
        folders: from where the paths of files count, and modules are looked for, beside the working directory.
    """
    return _Walk([Path.cwd(), *folders]).of(roots)


def file_of(root: str) -> Path | None:
    """Return the file of a root, if it is one of Python and not of what gradspec depends on; nothing is imported."""
    walk = _Walk([Path.cwd()])
    name = walk.named(root)
    found = walk.find(name) if name and not walk.is_beneath(name.partition(".")[0]) else None
    return found.file if found is not None and found.file is not None and found.file.suffix == ".py" else None


class _Walk:
    """One walk along imports."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = list(folders)
        self.found = Reached()
        self.owned: set[str] = set()
        self.tops: dict[str, Found] = {}
        #: Modules that were named by their files, whatever else has their names.
        self.loose: set[str] = set()
        self.homes, self.seen = set[Path](), set[str]()
        self.many: dict[str, str] = {}

    def of(self, roots: Sequence[str]) -> Reached:
        queue: list[str] = []
        for root in roots:
            name = self.named(root)
            if not name or not (self.is_beneath(name.partition(".")[0]) or self.find(name)):
                self.found.missing.add(root)
                continue
            top = name.partition(".")[0]
            place = self._top(top).place
            self.owned |= set(owners_of(top, place)) if place else set()
            queue += _with_parents(name)
        while queue:
            name = queue.pop()
            if name not in self.seen:
                self.seen.add(name)
                queue += self._imports(name)
        return self.found

    def named(self, root: str) -> str:
        """Return the import path of a root; of a file, look beside it for what it imports; "" if it is nowhere."""
        where = root.partition(":")[0] if ".py:" not in root else root.rpartition(":")[0]
        if not where.endswith(".py"):
            return where
        files = (folder / where for folder in self.folders)
        file = next((file.resolve() for file in files if file.is_file()), None)
        if file is None:
            return ""
        home = file.parent
        while (home / "__init__.py").is_file():
            home = home.parent
        self.folders[:0] = [file.parent] if file.parent == home else [file.parent, home]
        parts = file.relative_to(home).with_suffix("").parts
        if len(parts) == 1:
            self.tops[file.stem] = Found(file)
            self.loose.add(file.stem)
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def is_beneath(self, top: str) -> bool:
        return top not in self.loose and is_beneath(top)

    def _top(self, top: str) -> Found:
        if top not in self.tops:
            self.tops[top] = find_top(top, self.folders) or Found(None)
        return self.tops[top]

    def find(self, name: str) -> Found | None:
        """Return a module, from the folders of its parents."""
        top, *rest = name.split(".")
        found: Found | None = self._top(top)
        for part in rest:
            found = find_within(found.folders, part) if found is not None else None
        return found if found is not None and found.place is not None else None

    def _imports(self, name: str) -> Iterator[str]:
        """Note the file of a module, or what it counts by; yield the modules that it imports."""
        top = name.partition(".")[0]
        place = None if self.is_beneath(top) else self._top(top).place
        if place is None:
            return
        if top == "gradspec":
            if self.found.beneath:  # all of its files count, and are read once
                return
            key, files = key_of_gradspec(place)
            self.found.others.add(key)
            self.found.beneath |= set(files)
            return
        if (owners := owners_of(top, place)) and self.owned.isdisjoint(owners):
            self.found.others |= {f"{owner} {version_of(owner)}" for owner in owners}
            return
        if top not in self.many:
            self.many[top] = looks_of_many(place)
        if looks := self.many[top]:
            self.found.others.add(f"{top} {looks}")
            return
        found = self.find(name)
        if found is None or found.file is None:
            return
        self.found.files.add(found.file)
        self._add_beside(found.file)
        if found.file.suffix == ".py":
            for other in imported(found.file, name if found.folders else name.rpartition(".")[0]):
                yield from _with_parents(other)

    def _add_beside(self, file: Path) -> None:
        """Note the files beside a module that are not Python: all of its package, or native ones outside packages."""
        home, folder = file.parent, file.parent
        while (folder / "__init__.py").is_file():
            home, folder = folder, folder.parent
        if home not in self.homes:
            self.homes.add(home)
            files = native_in(home) if home == folder else data_of(home)
            self.found.files |= {one.resolve() for one in files}


def _with_parents(name: str) -> Iterator[str]:
    """Return the packages of a module, which its import runs too, and the module."""
    parts = name.split(".")
    return (".".join(parts[:number]) for number in range(1, len(parts) + 1))


def imported(file: Path, package: str) -> Sequence[str]:
    """Return the names that a file imports, absolute; of `from a import b` both a and a.b, which may be a module."""
    return _imported(file, package, look(file))


@lru_cache(maxsize=20_000)
def _imported(file: Path, package: str, _look: str) -> Sequence[str]:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= dict.fromkeys(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".") if package else []
            above = parts[: len(parts) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            if base:
                found |= dict.fromkeys([base, *(f"{base}.{alias.name}" for alias in node.names)])
    return tuple(found)
