"""Modules read from files, once: what each defines, what it imports, and what it does when it is imported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gradspec._record._definitions import Definition, definitions
from gradspec._record._mentions import Target
from gradspec._record._modules import Module, Modules


@dataclass(frozen=True)
class Loaded:
    """A module with the definitions and imports that it binds, by name."""

    module: Module
    definitions: tuple[Definition, ...]
    by_name: dict[str, list[Definition]]
    imports: dict[str, set[Target]]
    stars: list[str]
    #: The definitions that may do more, when the module is imported, than bind their names.
    effects: tuple[Definition, ...]
    #: What the file looked like when it was read.
    stamp: tuple[int, int]


class Program:
    """The modules that can be reached, read when they are asked for."""

    def __init__(self, modules: Modules) -> None:
        self.modules = modules
        self._loaded: dict[str, Loaded] = {}
        self._imports: dict[str, tuple[str, ...]] = {}

    def is_fresh(self) -> bool:
        """Whether the files that were read are as they were."""
        return all(stamp(home.module.file) == home.stamp for home in self._loaded.values())

    def load(self, module: Module) -> Loaded:
        """Return the definitions and imports of a module."""
        if module.name not in self._loaded:
            self._loaded[module.name] = _read(module)
        return self._loaded[module.name]

    def siblings(self, package: str, module: Module) -> Iterator[Module]:
        """Yield every module that a computed name may mean: those of the package."""
        top = self.modules.find(package)
        if top is None or not top.is_package:
            yield module
            return
        root = top.file.parent
        for file in sorted(root.rglob("*.py")):
            parts = file.relative_to(root).with_suffix("").parts
            name = ".".join([package, *(parts[:-1] if parts[-1] == "__init__" else parts)])
            if (found := self.modules.find(name)) is not None:
                yield found

    def imported_by(self, name: str) -> tuple[str, ...]:
        """Return the modules of ours that a module imports, and the package that is imported before it."""
        if name not in self._imports:
            module, found = self.modules.find(name), set[str]()
            if module is not None:
                home = self.load(module)
                found |= {name.rpartition(".")[0]} if "." in name and not name.endswith(".py") else set()
                found |= {*home.stars}
                for where, what in (target for targets in home.imports.values() for target in targets):
                    found.add(where)
                    source = self.modules.find(where)
                    if what and source is not None and (inner := self.modules.within(source, what)) is not None:
                        found.add(inner.name)
            self._imports[name] = tuple(n for n in found if self.modules.find(n) is not None)
        return self._imports[name]


def _read(module: Module) -> Loaded:
    """Return the definitions and imports of a module; one of a package is parsed once a process, until it changes."""
    stamped = stamp(module.file)
    known = _parsed.get(module)
    if known is not None and known.stamp == stamped:
        return known
    found, imports, stars = definitions(module)
    by_name: dict[str, list[Definition]] = {}
    for definition in found:
        for name in definition.binds:
            by_name.setdefault(name, []).append(definition)
    effects = tuple(definition for definition in found if definition.has_effect or definition.decorators)
    loaded = Loaded(module, found, by_name, imports, stars, effects, stamped)
    if not module.name.endswith(".py"):  # what a script imports depends on which files lie beside it
        _parsed[module] = loaded
    return loaded


_parsed: dict[Module, Loaded] = {}


def stamp(file: Path) -> tuple[int, int]:
    """Return what a file looks like from outside; one that is gone looks like no other."""
    try:
        found = file.stat()
    except OSError:
        return (-1, -1)
    return (found.st_mtime_ns, found.st_size)
