"""Which definitions can change what a root gives: those that it mentions, and what runs when its modules are imported.

Attributes of objects need no search: an object was made somewhere, by code that mentions its class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gradspec._record._definitions import Definition, definitions
from gradspec._record._effects import is_registration, may_attach, registers_operators
from gradspec._record._mentions import Chain, Mentions, Target
from gradspec._record._modules import Module, Modules

#: What reads files of a package, or loads libraries.
_READERS = ("importlib.resources", "pkgutil.get_data", "ctypes.", "torch.utils.cpp_extension", "torch.ops.load_library")
#: Attributes that every module has.
_OF_EVERY_MODULE = frozenset({"__name__", "__doc__", "__file__", "__path__", "__dict__", "__spec__", "__version__"})


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


@dataclass
class Resolved:
    """What the mentions of one definition mean."""

    #: The definitions of ours, by how they are mentioned.
    ours: dict[Chain, list[Definition]] = field(default_factory=dict)
    #: The import paths of others.
    others: set[str] = field(default_factory=set)
    #: Modules of ours that code inside of it imports.
    modules: set[str] = field(default_factory=set)

    def links(self, *, documented: bool) -> str:
        """Return what each name means, as text: the same definitions under other names are something else."""
        found = {
            f"{chain[0]}={target.documented_hash if documented else target.hash}"
            for chain, targets in self.ours.items()
            for target in targets
        }
        return " ".join(sorted(found))


@dataclass
class Closure:
    """What a root stands on."""

    #: In the order in which they were found, each with what it mentions.
    definitions: dict[Definition, Resolved] = field(default_factory=dict)
    #: The import paths that are not ours.
    others: set[str] = field(default_factory=set)
    #: Files that code reads or loads: data and native libraries.
    data: set[Path] = field(default_factory=set)
    #: The files of all modules that are imported with these, whether or not they matter.
    imported: set[Path] = field(default_factory=set)

    @property
    def files(self) -> list[Path]:
        """The files that it stands on, sorted."""
        return sorted({definition.module.file for definition in self.definitions} | self.data)


class Reach:
    """Finds what roots stand on; a root is `module:NAME`, `module` for all of it, or a file in place of a module."""

    def __init__(self, modules: Modules) -> None:
        self.modules = modules
        self._loaded: dict[str, Loaded] = {}
        self._resolved: dict[tuple[Definition, bool], Resolved] = {}
        self._closures: dict[tuple[tuple[str, ...], bool], Closure] = {}
        self._imports: dict[str, tuple[str, ...]] = {}

    def is_fresh(self) -> bool:
        """Whether the files that were read are as they were."""
        return all(stamp(home.module.file) == home.stamp for home in self._loaded.values())

    def closure(self, roots: Iterable[str], *, examples: bool = False) -> Closure:
        """Return what roots stand on.

        Args:
            roots: as above.
            examples: whether the examples of docstrings are run too.

        Raises:
            LookupError: there is no such module, or no such name in it.
            SyntaxError: a module that is reached is no Python.
        """
        key = (tuple(roots), examples)
        if key not in self._closures:
            self._closures[key] = self._closure(*key)
        return self._closures[key]

    def _closure(self, roots: tuple[str, ...], examples: bool) -> Closure:
        closure = Closure()
        self._add(closure, [found for root in roots for found in self.root(root)], examples)
        while attached := list(self._attached(closure)):
            self._add(closure, attached, examples)
        closure.imported = {module.file for module in self._imported(closure)}
        for definition, resolved in closure.definitions.items():
            closure.others |= resolved.others
            if definition.mentions.reads_files or any(other.startswith(_READERS) for other in resolved.others):
                closure.data.update(_beside(definition.module.file))
            closure.data.update(filter(None, map(self.modules.native, resolved.others)))
        return closure

    def root(self, root: str) -> list[Definition]:
        """Return the definitions that a root names.

        Raises:
            LookupError: there are none.
        """
        where, _, name = root.rpartition(":") if ":" in root else (root, "", "")
        module = self.modules.find(where)
        if module is None:
            raise LookupError(f"no module {where!r}")
        found = Resolved()
        if name:
            home = self.load(module)
            if name not in home.by_name and name not in home.imports and "__getattr__" not in home.by_name:
                raise LookupError(f"no {name!r} in {where!r}")
            self._attribute(found, (name,), module, name, ())
        else:
            found.ours[(where,)] = list(self.load(module).definitions)
        definitions = [definition for several in found.ours.values() for definition in several]
        if name and not definitions:
            raise LookupError(f"no {name!r} in {where!r}")
        return definitions

    def load(self, module: Module) -> Loaded:
        """Return the definitions and imports of a module."""
        if module.name not in self._loaded:
            stamped = stamp(module.file)
            found, imports, stars = definitions(module)
            by_name: dict[str, list[Definition]] = {}
            for definition in found:
                for name in definition.binds:
                    by_name.setdefault(name, []).append(definition)
            effects = tuple(definition for definition in found if definition.has_effect or definition.decorators)
            self._loaded[module.name] = Loaded(module, found, by_name, imports, stars, effects, stamped)
        return self._loaded[module.name]

    def resolved(self, definition: Definition, *, examples: bool = False) -> Resolved:
        """Return what the mentions of a definition mean."""
        key = (definition, examples)
        if key not in self._resolved:
            found = self._resolved[key] = Resolved()
            self._resolve(found, definition.mentions, definition.module)
            if examples:
                self._resolve(found, definition.examples, definition.module)
        return self._resolved[key]

    def _add(self, closure: Closure, queue: list[Definition], examples: bool) -> None:
        while queue:
            definition = queue.pop()
            if definition not in closure.definitions:
                found = closure.definitions[definition] = self.resolved(definition, examples=examples)
                queue.extend(target for targets in found.ours.values() for target in targets)

    def _resolve(self, found: Resolved, mentions: Mentions, module: Module) -> None:
        for chain in mentions.chains:
            self._name(found, chain, module, mentions)
        for name in mentions.dynamic:
            for target in mentions.local.get(name, ()) or self.load(module).imports.get(name, ()):
                self._follow(found, (name,), target, ())
        found.modules |= {name for targets in mentions.local.values() for name, _ in targets}
        if mentions.finds_modules:
            package = module.name.partition(".")[0] if not module.name.endswith(".py") else module.name
            found.ours[("<computed>",)] = [d for name in self._siblings(package, module) for d in self._whole(name)]

    def _name(self, found: Resolved, chain: Chain, module: Module, mentions: Mentions) -> None:
        name, rest = chain[0], chain[1:]
        home = self.load(module)
        for target in mentions.local.get(name, ()):
            self._follow(found, chain, target, rest)
        if name in home.by_name:
            found.ours.setdefault(chain[:1], []).extend(home.by_name[name])
        for target in home.imports.get(name, ()):
            self._follow(found, chain, target, rest)
        if name not in home.by_name and name not in home.imports and name not in mentions.local:
            for star in home.stars:
                source = self.modules.find(star)
                if source is not None and name in {**self.load(source).by_name, **self.load(source).imports}:
                    self._attribute(found, chain, source, name, rest)

    def _follow(self, found: Resolved, chain: Chain, target: Target, rest: Chain) -> None:
        where, name = target
        module = self.modules.find(where)
        if module is None:
            found.others.add(".".join(filter(None, [where, name, *rest])))
        elif name:
            self._attribute(found, chain, module, name, rest)
        elif rest:
            self._attribute(found, chain, module, rest[0], rest[1:])
        else:
            found.ours.setdefault(chain, []).extend(self._whole(module))

    def _attribute(self, found: Resolved, chain: Chain, module: Module, name: str, rest: Chain) -> None:
        home = self.load(module)
        if name in home.by_name:
            found.ours.setdefault(chain, []).extend(home.by_name[name])
        for target in home.imports.get(name, ()):
            if target != (module.name, name):
                self._follow(found, chain, target, rest)
        if name in home.by_name or name in home.imports or name in _OF_EVERY_MODULE:
            return
        submodule = self.modules.find(f"{module.name}.{name}")
        if submodule is not None:
            self._follow(found, chain, (submodule.name, ""), rest)
        elif home.stars:
            for star in home.stars:
                self._follow(found, chain, (star, name), rest)
        else:  # made when it is asked for
            found.ours.setdefault(chain, []).extend(self._whole(module))

    def _whole(self, module: Module) -> list[Definition]:
        """Return all that a module defines or passes on by name."""
        home = self.load(module)
        found = Resolved()
        for name, targets in home.imports.items():
            for where, what in targets:
                if what and self.modules.find(where) is not None and self.modules.find(f"{where}.{what}") is None:
                    self._follow(found, (name,), (where, what), ())
        passed_on = [definition for several in found.ours.values() for definition in several]
        return [*home.definitions, *passed_on]

    def _siblings(self, package: str, module: Module) -> Iterator[Module]:
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

    def _attached(self, closure: Closure) -> Iterator[Definition]:
        """Yield what runs on import and may change what was reached, and is not there yet."""
        operators = any(other.startswith("torch.ops") for r in closure.definitions.values() for other in r.others)
        for module in self._imported(closure):
            for definition in self.load(module).effects:
                if definition in closure.definitions:
                    continue
                resolved = self.resolved(definition)
                ours = [target for targets in resolved.ours.values() for target in targets]
                if (
                    (operators and registers_operators(resolved.others))
                    or is_registration(definition, resolved.others)
                    or may_attach(definition, resolved.ours, ours, closure.definitions, self.resolved)
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
                queue.extend(self._imported_by(name))
        return [module for name in seen if (module := self.modules.find(name)) is not None]

    def _imported_by(self, name: str) -> tuple[str, ...]:
        """Return the modules of ours that a module imports, and the package that is imported before it."""
        if name not in self._imports:
            module, found = self.modules.find(name), set[str]()
            if module is not None:
                home = self.load(module)
                found |= {name.rpartition(".")[0]} if "." in name and not name.endswith(".py") else set()
                found |= {*home.stars}
                for targets in home.imports.values():
                    for where, what in targets:
                        found |= {where, f"{where}.{what}"} if what else {where}
            self._imports[name] = tuple(n for n in found if self.modules.find(n) is not None)
        return self._imports[name]


def _beside(file: Path) -> Iterator[Path]:
    """Yield the data and native libraries that lie with a module, below its folder."""
    for path in sorted(file.parent.rglob("*")):
        if path.suffix not in (".py", ".pyc", ".pyi") and "__pycache__" not in path.parts and path.is_file():
            yield path


def stamp(file: Path) -> tuple[int, int]:
    """Return what a file looks like from outside; one that is gone looks like no other."""
    try:
        found = file.stat()
    except OSError:
        return (-1, -1)
    return (found.st_mtime_ns, found.st_size)
