"""What a measurement depends on: its roots, and the key that their definitions had."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from gradspec._record._key import combined, hash_of
from gradspec._record._modules import ENVIRONMENT, Modules, place_of
from gradspec._record._reach import Closure, Reach

#: What a source raises that is not there any more, or that cannot be read as Python.
_UNREADABLE = (LookupError, SyntaxError, UnicodeDecodeError, OSError, RecursionError)


@dataclass(frozen=True, kw_only=True)
class Source:
    """What a spec, a law or a whole measurement depends on."""

    #: Where it is defined: `module:NAME`, `module`, or the path of a file in place of the module.
    roots: tuple[str, ...]
    #: What no definition says, such as the version of a published package.
    facts: str = ""
    #: The top-level names of others of which the provenance notes the version, where others count by it.
    noted: tuple[str, ...] = ()
    #: The hash of the definitions; empty: they are not known, and nothing can be said of it later.
    key: str = ""
    #: Where the objects are defined of which the examples are run; as `roots`.
    documents: tuple[str, ...] = ()
    #: The hash with the docstrings of these, and what their examples call; empty if there are none.
    documented: str = ""

    @classmethod
    def of(
        cls, reach: Reach, *roots: str, facts: str = "", noted: Iterable[str] = (), documents: Iterable[str] = ()
    ) -> Source:
        """Return the source of roots as their files are now."""
        return cls(roots=roots, facts=facts, noted=tuple(noted), documents=tuple(documents)).today(reach)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Source:
        """Return the source that a record holds.

        Raises:
            TypeError: it holds something else.
        """
        roots = tuple(data["roots"])
        texts = {name: data.get(name, "") for name in ("facts", "key", "documented")}
        noted, documents = tuple(data.get("noted", ())), tuple(data.get("documents", ()))
        for value in (*roots, *noted, *documents, *texts.values()):
            if not isinstance(value, str):
                raise TypeError(f"{value!r} in a source is not text")
        return cls(roots=roots, noted=noted, documents=documents, **texts)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, without what is empty."""
        return {name: value for name, value in asdict(self).items() if value}

    def today(self, reach: Reach) -> Source:
        """Return the source of the same roots as their files are now."""
        reach = reach.looking_into(self.roots)
        try:
            closure = reach.closure(self.roots)
            key = combined(hash_of(closure, noted=self.noted), self.facts) if self.roots else ""
            documented = ""
            if self.documents:
                closure = reach.closure(self.roots, documents=self.documents)
                documented = combined(hash_of(closure, noted=self.noted), self.facts)
        except _UNREADABLE:
            key = documented = ""
        return replace(self, key=key, documented=documented)

    def is_current(self, reach: Reach) -> bool:
        """Whether the definitions are still those that were measured."""
        return bool(self.key) and self == self.today(reach)

    def closure(self, reach: Reach) -> Closure:
        """Return what its roots depend on, as far as they are there."""
        found, reach = Closure(), reach.looking_into(self.roots)
        for root in self.roots:
            try:
                closure = reach.closure([root])
            except _UNREADABLE:
                continue
            found.definitions |= closure.definitions
            found.others |= closure.others
            found.data |= closure.data
            found.imported |= closure.imported
        return found

    def files(self, reach: Reach) -> list[Path]:
        """Return the files that it depends on, as far as they are there."""
        return self.closure(reach).files


def tree_of(sources: Iterable[Source], reach: Reach) -> tuple[list[str], list[str]]:
    """Return the top-level packages that sources depend on, and the files beside these."""
    tops: set[str] = set()
    files: set[Path] = set()
    for source in sources:
        closure = source.closure(reach)
        tops |= {other.partition(".")[0] for other in closure.others}
        tops |= {d.module.name.partition(".")[0] for d in closure.definitions if not d.module.name.endswith(".py")}
        files |= set(closure.files)
    places = {place for top in tops if (place := place_of(top)) is not None}
    beside = [file for file in files if places.isdisjoint((*file.parents, file.with_suffix("")))]
    return sorted(tops - sys.stdlib_module_names), sorted(map(shown_path, beside))


def reach_from(*folders: Path) -> Reach:
    """Return what finds definitions: paths of files count from the working directory, or from one of `folders`.

    A process that asks again gets the same one, for as long as no file that it has read has changed.
    """
    key = (folders, tuple(sys.path), str(Path.cwd()))
    found = _reaches.get(key)
    if found is None or not found.is_fresh():
        _reaches.pop(key, None)
        while len(_reaches) >= _KEPT:  # a process that goes from folder to folder would keep them all
            del _reaches[next(iter(_reaches))]
        found = _reaches[key] = Reach(Modules(folders=folders))
    return found


#: How many of them a process keeps.
_KEPT = 4
_reaches: dict[tuple[tuple[Path, ...], tuple[str, ...], str], Reach] = {}


def root_of(thing: object, modules: Collection[str], path: str = "") -> tuple[str, ...]:
    """Return the roots of an object: where it is assigned, or else the whole modules that made it.

    Args:
        thing: a spec, a law.
        modules: the import paths of the modules in which it may be; those that it was made of.
        path: where it is, as the command line takes it, if that is known.
    """
    where, _, name = path.rpartition(":")
    if where.endswith(".py"):
        return (
            (f"{shown_path(Path(where))}:{name}",)
            if name and _has(_loaded(Path(where)), name, thing)
            else (shown_path(Path(where)),)
        )
    if name and _has(sys.modules.get(where), name, thing):
        return (f"{where}:{name}",)
    homes = [home for home in dict.fromkeys([*([where] if where else []), *modules]) if _root_of_module(home)]
    # A spec may be assigned elsewhere than where what it is made of is defined. The longest name: others pass it on.
    for module in [*homes, *sorted(sys.modules, key=lambda name: (-name.count("."), name))]:
        for name, value in list(vars(sys.modules.get(module, object)).items()):
            if value is thing and (root := _root_of_module(module)):
                return (f"{root}:{name}",)
    # What was made by a loop or a function, say, depends on the modules that made it; no file has what was typed.
    typed = "__main__" in modules and getattr(sys.modules.get("__main__"), "__file__", None) is None
    return () if typed else tuple(map(_root_of_module, homes))


def home_of(thing: object) -> str:
    """Return where a class or function is defined, as a root; "" if none can be named.

    What stands in a function, as a lambda does, has no name by which it is found again.
    """
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", "")
    if not isinstance(module, str) or not name or "<" in name:
        return ""
    home = _root_of_module(module)
    return f"{home}:{name}" if home and not Path(home).is_absolute() else ""


def _root_of_module(name: str) -> str:
    """Return the name by which a module is found again; of one outside of packages, its file; "" if it has none."""
    module, top = sys.modules.get(name), name.partition(".")[0]
    file = getattr(module, "__file__", None)
    # A spec of `torch.nn.Linear` does not depend on torch's source, but on its version.
    if file is None or not file.endswith(".py") or top in ENVIRONMENT or top in sys.stdlib_module_names:
        return ""
    found = Modules(ours=frozenset({name.partition(".")[0]})).find(name)
    if "." in name and found is not None and found.file == Path(file).resolve():
        return name
    return shown_path(Path(file))


def _has(module: object, name: str, thing: object) -> bool:
    return module is not None and getattr(module, name, None) is thing


def _loaded(file: Path) -> object:
    path = str(file.resolve())
    return next((m for m in list(sys.modules.values()) if getattr(m, "__file__", None) == path), None)


def shown_path(file: Path) -> str:
    """Return a path as a record holds it: from the working directory, where it lies below it."""
    file, here = file.resolve(), Path.cwd()
    return file.relative_to(here).as_posix() if file.is_relative_to(here) else file.as_posix()
