"""Python modules as files: found by name without importing anything, and told apart from what others distribute."""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import importlib.util
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

#: The packages whose definitions are always looked into, wherever they are installed.
ALWAYS_OURS = ("gradspec",)
#: What finding or reading a module, or a name in it, raises.
UNREADABLE = (LookupError, SyntaxError, UnicodeDecodeError, OSError, RecursionError)
#: What a measurement on any machine has beneath it: these versions are noted as its environment, not in its key.
ENVIRONMENT = frozenset({"torch", "numpy", "sympy", "click", "rich", "wrapt"})


@dataclass(frozen=True)
class Module:
    """A module whose definitions a key can hash."""

    #: The import path, or the path of a file that is not part of a package.
    name: str
    file: Path

    @property
    def is_package(self) -> bool:
        """Whether it is the `__init__` of a package."""
        return self.file.name == "__init__.py"

    @property
    def package(self) -> str:
        """The package that a relative import starts from; empty outside packages."""
        if self.name.endswith(".py"):
            return ""
        return self.name if self.is_package else self.name.rpartition(".")[0]


@dataclass
class Modules:
    """Finds modules by name.

    Args:
        ours: top-level packages to look into although they are installed; others count by their version.
        folders: from where the paths of files may count, beside the working directory.
    """

    ours: frozenset[str] = frozenset()
    folders: tuple[Path, ...] = ()
    _found: dict[str, Module | None] = field(default_factory=dict)
    _places: dict[str, Path | None] = field(default_factory=dict)
    _native: dict[str, Path | None] = field(default_factory=dict)

    def find(self, name: str) -> Module | None:
        """Return the module of an import path or of a file; None if it is not one of ours."""
        if name not in self._found:
            self._found[name] = self._find(name)
        return self._found[name]

    def within(self, package: Module, name: str) -> Module | None:
        """Return a module of a package."""
        if not package.name.endswith(".py"):
            return self.find(f"{package.name}.{name}")
        found = beside(package.file.parent, name) if package.is_package else None
        return self.find(found) if found else None

    def native(self, name: str) -> Path | None:
        """Return the native library that is a module of one of our packages."""
        if name not in self._native:
            self._native[name] = self._native_of(name)
        return self._native[name]

    def _native_of(self, name: str) -> Path | None:
        top, *rest = name.split(".")
        base = self._top(top)
        found = (
            (base.joinpath(*rest).with_suffix(end) for end in importlib.machinery.EXTENSION_SUFFIXES) if base else ()
        )
        return next((path for path in found if path.is_file()), None)

    def _find(self, name: str) -> Module | None:
        if name.endswith(".py"):
            file = located(name, self.folders)
            return Module(name, file) if file is not None else None
        top, *rest = name.split(".")
        base = self._top(top)
        if base is None:
            return None
        for part in rest:
            base = base / part
        for file in (base / "__init__.py", base.with_suffix(".py") if rest else base.parent / f"{top}.py"):
            if file.is_file():
                return Module(name, file)
        return None

    def _top(self, top: str) -> Path | None:
        """Return the folder of a top-level package, or the path of a top-level module without its suffix."""
        return self._place(top) if self.is_ours(top) else None

    def is_ours(self, top: str) -> bool:
        """Whether a top-level package is looked into."""
        place = self._place(top)
        return top in self.ours or top in ALWAYS_OURS or (place is not None and not is_installed(place))

    def _place(self, top: str) -> Path | None:
        if top not in self._places:
            self._places[top] = place_of(top)
        return self._places[top]


def split_root(root: str) -> tuple[str, str]:
    """Return the module of a root, or its file, and the name in it; "" stands for all that the module defines."""
    where, _, name = root.rpartition(":") if ":" in root else (root, "", "")
    return where, name


def beside(folder: Path, dotted: str) -> str:
    """Return the path of a module below a folder, as `python file.py` finds it; empty if there is none."""
    base = folder.joinpath(*dotted.split("."))
    found = (file for file in (base / "__init__.py", base.with_suffix(".py")) if dotted and file.is_file())
    return str(next(found, ""))


def located(name: str, folders: Iterable[Path] = ()) -> Path | None:
    """Return the file of a path that a record holds: as it is, or below one of the folders."""
    for candidate in (Path(name), *(folder / name for folder in folders)):
        if candidate.is_file():
            return candidate.resolve()
    return None


def place_of(top: str) -> Path | None:
    """Return the folder of a top-level package, or the path of a module without its suffix; None if it has no file.

    A package that is installed in a form of its own (editable, say) is found through the import system; it has no
    parent, so nothing is imported.
    """
    loaded = getattr(sys.modules.get(top), "__spec__", None)
    try:
        found = loaded or importlib.machinery.PathFinder.find_spec(top) or importlib.util.find_spec(top)
    except (ImportError, ValueError, AttributeError):
        return None
    if found is None:
        return None
    if found.submodule_search_locations:
        return Path(next(iter(found.submodule_search_locations))).resolve()
    if found.origin and found.origin.endswith(".py"):
        return Path(found.origin).resolve().with_suffix("")
    return None


@cache
def version_of(top: str) -> str:
    """Return the distributions and versions of a top-level name that is not ours; empty for the standard library."""
    if top in sys.stdlib_module_names:
        return ""
    names = sorted(set(_distributions().get(top, ())))
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)


@cache
def _distributions() -> Mapping[str, list[str]]:
    return importlib.metadata.packages_distributions()


def is_installed(place: Path) -> bool:
    """Whether a package is one that was installed, or of the standard library; one in a working tree is neither."""
    return any(place.is_relative_to(folder) for folder in _installed_folders())


@cache
def _installed_folders() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    return tuple({Path(paths[name]).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")})
