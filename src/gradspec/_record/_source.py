"""What a measurement depends on: its roots, and the key that their definitions had."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from gradspec._record._key import combined, hash_of
from gradspec._record._modules import UNREADABLE, Modules, place_of
from gradspec._record._reach import Closure, Reach
from gradspec._record._roots import shown_path


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
        """Return the source as its files are now: of the same roots, or of where these are found with the same key."""
        reach = reach.looking_into(self.roots)
        now = self._as_it_is(reach)
        if not now.key and self.key:
            for places in reach.moved((*self.roots, *self.documents)):
                there = self._at(places)._as_it_is(reach)
                if self.agrees(there):
                    return there
        return now

    def _as_it_is(self, reach: Reach) -> Source:
        try:
            closure = reach.closure(self.roots)
            key = combined(hash_of(closure, noted=self.noted), self.facts) if self.roots else ""
            documented = ""
            if self.documents:
                closure = reach.closure(self.roots, documents=self.documents)
                documented = combined(hash_of(closure, noted=self.noted), self.facts)
        except UNREADABLE:
            key = documented = ""
        return replace(self, key=key, documented=documented)

    def _at(self, places: Mapping[str, str]) -> Source:
        roots, documents = (tuple(places.get(root, root) for root in some) for some in (self.roots, self.documents))
        return replace(self, roots=roots, documents=documents)

    def is_current(self, reach: Reach) -> bool:
        """Whether the definitions are still those that were measured, wherever they are."""
        return self.agrees(self.today(reach))

    def agrees(self, other: Source | None) -> bool:
        """Whether both are of the same definitions, wherever these are."""
        return other is not None and self.key != "" and (self.key, self.documented) == (other.key, other.documented)

    def closure(self, reach: Reach) -> Closure:
        """Return what its roots depend on, as far as they are there."""
        found, reach = Closure(), reach.looking_into(self.roots)
        for root in self.roots:
            try:
                closure = reach.closure([root])
            except UNREADABLE:
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
