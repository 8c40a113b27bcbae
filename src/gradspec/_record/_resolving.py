"""What the names in a definition mean: definitions of ours, through imports, or what others distribute."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from gradspec._record._definitions import Definition
from gradspec._record._mentions import Chain, Mentions, Target
from gradspec._record._modules import Module, split_root
from gradspec._record._program import Loaded, Program

#: Attributes that every module has.
_OF_EVERY_MODULE = frozenset({"__name__", "__doc__", "__file__", "__path__", "__dict__", "__spec__", "__version__"})


@dataclass
class Resolved:
    """What the mentions of one definition mean."""

    #: The definitions of ours, by how they are mentioned.
    ours: dict[Chain, list[Definition]] = field(default_factory=dict)
    #: The import paths of others.
    others: set[str] = field(default_factory=set)
    #: Modules of ours that code inside of it imports.
    modules: set[str] = field(default_factory=set)

    @cached_property
    def links(self) -> str:
        """What each name means, as text: the same definitions under other names are something else."""
        found = {f"{chain[0]}={target.hash}" for chain, targets in self.ours.items() for target in targets}
        return " ".join(sorted(found))


class Resolver:
    """Finds what names mean."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._resolved: dict[tuple[Definition, bool], Resolved] = {}
        #: What is being looked for: modules may pass names on in a circle.
        self._asked: set[tuple[str, str]] = set()

    def root(self, root: str) -> list[Definition]:
        """Return the definitions that a root names.

        Raises:
            LookupError: there are none.
        """
        where, name = split_root(root)
        module = self.program.modules.find(where)
        if module is None:
            raise LookupError(f"no module {where!r}")
        found = Resolved()
        if name:
            home = self.program.load(module)
            if name not in home.by_name and name not in home.imports and "__getattr__" not in home.by_name:
                raise LookupError(f"no {name!r} in {where!r}")
            self._attribute(found, (name,), module, name, ())
        else:
            found.ours[(where,)] = list(self.program.load(module).definitions)
        definitions = [definition for several in found.ours.values() for definition in several]
        if name and not definitions:
            raise LookupError(f"no {name!r} in {where!r}")
        return definitions

    def resolved(self, definition: Definition, *, examples: bool = False) -> Resolved:
        """Return what the mentions of a definition mean."""
        key = (definition, examples)
        if key not in self._resolved:
            found = self._resolved[key] = Resolved()
            self._resolve(found, definition.mentions, definition.module)
            if examples:
                self._resolve(found, definition.examples, definition.module)
        return self._resolved[key]

    def _resolve(self, found: Resolved, mentions: Mentions, module: Module) -> None:
        for chain in mentions.chains:
            self._name(found, chain, module, mentions)
        for name in mentions.dynamic:
            for target in mentions.local.get(name, ()) or self.program.load(module).imports.get(name, ()):
                self._follow(found, (name,), target, ())
        if mentions.own_names:
            found.ours[("globals",)] = self._whole(module)
        found.modules |= {name for targets in mentions.local.values() for name, _ in targets}
        if mentions.finds_modules:
            package = module.name.partition(".")[0] if not module.name.endswith(".py") else module.name
            found.ours[("<computed>",)] = [
                d for name in self.program.siblings(package, module) for d in self._whole(name)
            ]

    def _name(self, found: Resolved, chain: Chain, module: Module, mentions: Mentions) -> None:
        name, rest = chain[0], chain[1:]
        home = self.program.load(module)
        for target in mentions.local.get(name, ()):
            self._follow(found, chain, target, rest)
        if name in home.by_name:
            found.ours.setdefault(chain[:1], []).extend(home.by_name[name])
        for target in home.imports.get(name, ()):
            self._follow(found, chain, target, rest)
        if name not in home.by_name and name not in home.imports and name not in mentions.local:
            for star in home.stars:
                source = self.program.modules.find(star)
                if source is not None and name in {
                    **self.program.load(source).by_name,
                    **self.program.load(source).imports,
                }:
                    self._attribute(found, chain, source, name, rest)

    def _follow(self, found: Resolved, chain: Chain, target: Target, rest: Chain) -> None:
        where, name = target
        module = self.program.modules.find(where)
        if module is None:
            found.others.add(".".join(filter(None, [where, name, *rest])))
        elif name:
            self._attribute(found, chain, module, name, rest)
        elif rest:
            self._attribute(found, chain, module, rest[0], rest[1:])
        else:
            found.ours.setdefault(chain, []).extend(self._whole(module))

    def _attribute(self, found: Resolved, chain: Chain, module: Module, name: str, rest: Chain) -> None:
        asked = (module.name, name)
        if asked not in self._asked:
            self._asked.add(asked)
            try:
                self._attribute_of(found, chain, module, name, rest)
            finally:
                self._asked.discard(asked)

    def _attribute_of(self, found: Resolved, chain: Chain, module: Module, name: str, rest: Chain) -> None:
        home = self.program.load(module)
        if name in home.by_name:
            found.ours.setdefault(chain, []).extend(home.by_name[name])
        for target in home.imports.get(name, ()):
            if target != (module.name, name):
                self._follow(found, chain, target, rest)
        if name in home.by_name or name in home.imports or name in _OF_EVERY_MODULE:
            return
        submodule = self.program.modules.within(module, name)
        if submodule is not None:
            self._follow(found, chain, (submodule.name, ""), rest)
        elif home.stars:
            for star in home.stars:
                self._follow(found, chain, (star, name), rest)
        else:  # made when it is asked for
            found.ours.setdefault(chain, []).extend(self._whole(module))

    def _whole(self, module: Module) -> list[Definition]:
        """Return all that a module defines or passes on by name."""
        home, asked = self.program.load(module), (module.name, "*")
        if asked in self._asked:
            return []
        self._asked.add(asked)
        try:
            return [*home.definitions, *self._passed_on(home)]
        finally:
            self._asked.discard(asked)

    def _passed_on(self, home: Loaded) -> list[Definition]:
        found = Resolved()
        for name, targets in home.imports.items():
            for where, what in targets:
                source = self.program.modules.find(where) if what else None
                if source is not None and self.program.modules.within(source, what) is None:
                    self._follow(found, (name,), (where, what), ())
        stars = [source for star in home.stars if (source := self.program.modules.find(star)) is not None]
        inner = [definition for source in stars for definition in self._whole(source)]
        return [*inner, *(definition for several in found.ours.values() for definition in several)]
