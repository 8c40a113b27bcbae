"""Which definitions can change what a root gives: those that it mentions, and what runs when its modules are imported.

Attributes of objects need no search: an object was made somewhere, by code that mentions its class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gradspec._record._data import data_of
from gradspec._record._definitions import Definition
from gradspec._record._effects import is_registration, may_attach, registers_operators
from gradspec._record._modules import ENVIRONMENT, Module, Modules, split_root
from gradspec._record._moved import moved
from gradspec._record._program import Program
from gradspec._record._resolving import Resolved, Resolver

#: What reads files of a package, or loads libraries.
_READERS = ("importlib.resources", "pkgutil.get_data", "ctypes.", "torch.utils.cpp_extension", "torch.ops.load_library")


@dataclass
class Closure:
    """What a root depends on."""

    #: In the order in which they were found, each with what it mentions.
    definitions: dict[Definition, Resolved] = field(default_factory=dict)
    #: Those of which the docstrings count.
    documents: set[Definition] = field(default_factory=set)
    #: The import paths that are not ours.
    others: set[str] = field(default_factory=set)
    #: Files that code reads or loads: data and native libraries.
    data: set[Path] = field(default_factory=set)
    #: The files of all modules that are imported with these, whether or not they matter.
    imported: set[Path] = field(default_factory=set)

    @property
    def files(self) -> list[Path]:
        """The files that it depends on, sorted."""
        return sorted({definition.module.file for definition in self.definitions} | self.data)


class Reach:
    """Finds what roots depend on; a root is `module:NAME`, `module` for all of it, or a file in place of a module."""

    def __init__(self, modules: Modules) -> None:
        self.modules = modules
        self._program = Program(modules)
        self._resolver = Resolver(self._program)
        self._closures: dict[tuple[tuple[str, ...], tuple[str, ...]], Closure] = {}
        self._others: dict[frozenset[str], Reach] = {}

    def looking_into(self, roots: Iterable[str]) -> Reach:
        """Return what finds definitions in the packages of some roots, too, although they may be installed."""
        ours = {split_root(root)[0] for root in roots}
        tops = {name.partition(".")[0] for name in ours if name and not name.endswith(".py")} - ENVIRONMENT
        key = frozenset(top for top in tops if not self.modules.is_ours(top))
        if not key:
            return self
        if key not in self._others:
            modules = Modules(ours=self.modules.ours | key, folders=self.modules.folders)
            self._others[key] = Reach(modules)
        return self._others[key]

    def is_fresh(self) -> bool:
        """Whether the files that were read are as they were."""
        return self._program.is_fresh() and all(other.is_fresh() for other in self._others.values())

    def moved(self, roots: Iterable[str]) -> Iterator[Mapping[str, str]]:
        """Yield what roots may be called now, by the names that they had; nothing where all are where they were."""
        yield from moved(self._resolver, roots)

    def closure(self, roots: Iterable[str], *, documents: Iterable[str] = ()) -> Closure:
        """Return what roots depend on.

        Args:
            roots: as above.
            documents: the roots of objects of which the docstrings count, with what their examples call.

        Raises:
            LookupError: there is no such module, or no such name in it.
            SyntaxError: a module that is reached is not Python.
        """
        key = (tuple(roots), tuple(documents))
        if key not in self._closures:
            self._closures[key] = self._closure(*key)
        return self._closures[key]

    def _closure(self, roots: tuple[str, ...], documents: tuple[str, ...]) -> Closure:
        closure = Closure(documents={found for root in documents for found in self._resolver.root(root)})
        self._add(closure, [*closure.documents, *(found for root in roots for found in self._resolver.root(root))])
        while attached := list(self._attached(closure)):
            self._add(closure, attached)
        closure.imported = {module.file for module in self._imported(closure)}
        for definition, resolved in closure.definitions.items():
            closure.others |= resolved.others
            if definition.mentions.reads_files or any(other.startswith(_READERS) for other in resolved.others):
                closure.data.update(data_of(definition.module))
            closure.data.update(filter(None, map(self.modules.native, resolved.others)))
        return closure

    def _add(self, closure: Closure, queue: list[Definition]) -> None:
        while queue:
            definition = queue.pop()
            if definition not in closure.definitions:
                examples = definition in closure.documents
                found = closure.definitions[definition] = self._resolver.resolved(definition, examples=examples)
                queue.extend(target for targets in found.ours.values() for target in targets)

    def _attached(self, closure: Closure) -> Iterator[Definition]:
        """Yield what runs on import and may change what was reached, and is not there yet."""
        operators = any(other.startswith("torch.ops") for r in closure.definitions.values() for other in r.others)
        for module in self._imported(closure):
            for definition in self._program.load(module).effects:
                if definition in closure.definitions:
                    continue
                resolved = self._resolver.resolved(definition)
                ours = [target for targets in resolved.ours.values() for target in targets]
                if (
                    (operators and registers_operators(resolved.others))
                    or is_registration(definition, resolved.others)
                    or may_attach(definition, resolved.ours, ours, closure.definitions, self._resolver.resolved)
                ):
                    yield definition

    def _imported(self, closure: Closure) -> Sequence[Module]:
        """Return the modules of ours that are imported where these definitions are."""
        queue = [definition.module.name for definition in closure.definitions]
        queue += [name for resolved in closure.definitions.values() for name in resolved.modules]
        seen: set[str] = set()
        while queue:
            name = queue.pop()
            if name not in seen:
                seen.add(name)
                queue.extend(self._program.imported_by(name))
        return [module for name in seen if (module := self.modules.find(name)) is not None]
