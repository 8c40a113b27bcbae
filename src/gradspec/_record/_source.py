"""The source that a measurement depends on: its first modules, and a key of all files that they reach."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from gradspec._record._bytes import short
from gradspec._record._files import Reached, reach
from gradspec._record._packages import is_beneath


@dataclass(frozen=True, kw_only=True)
class Source:
    """The source that a spec, a law or a whole measurement depends on."""

    #: Where it is defined: import paths of modules, or paths of files.
    roots: tuple[str, ...]
    #: What no file says, such as the calls of an audit.
    facts: str = ""
    #: The hash of the files that these reach; empty: it is not known, and nothing can be said of it later.
    key: str = ""

    @classmethod
    def of(cls, *roots: str, facts: str = "", since: float | None = None) -> Source:
        """Return the source of roots as their files are now.

        Args:
            roots: modules or files.
            facts: what no file says.
            since: when the measurement began: a file that changed later leaves the key empty.
        """
        return cls(roots=roots, facts=facts).today(since=since)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Source:
        """Return the source that a record holds.

        Raises:
            TypeError: it holds something else.
        """
        roots, texts = tuple(data.get("roots", ())), {name: data.get(name, "") for name in ("facts", "key")}
        for value in (*roots, *texts.values()):
            if not isinstance(value, str):
                raise TypeError(f"{value!r} in a source is not text")
        return cls(roots=roots, **texts)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, without what is empty."""
        return {name: value for name, value in asdict(self).items() if value}

    def today(self, *folders: Path, since: float | None = None) -> Source:
        """Return the source as its files are now; paths of files count from `folders` too."""
        return self.as_of(self.reached(*folders), since=since)

    def as_of(self, found: Reached, *, since: float | None = None) -> Source:
        """Return the source with the key of what it reaches."""
        is_known = self.roots and not found.missing and (since is None or found.newest() <= since)
        return replace(self, key=short(f"{found.key()}\n{self.facts}") if is_known else "")

    def agrees(self, other: Source | None) -> bool:
        """Whether both are of the same bytes, wherever these lie."""
        return other is not None and self.key != "" and self.key == other.key

    def reached(self, *folders: Path) -> Reached:
        """Return what it depends on."""
        return reach(self.roots, folders)


class SourcesLater(Mapping[str, Source]):
    """Sources that are computed when the first of them is read: a report that is not saved spends nothing on them.

    Args:
        compute: returns the sources by name.
    """

    def __init__(self, compute: Callable[[], Mapping[str, Source]]) -> None:
        self._compute = compute

    @cached_property
    def _sources(self) -> Mapping[str, Source]:
        return self._compute()

    def __getitem__(self, name: str) -> Source:
        return self._sources[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self)!r})"

    def __reduce__(self) -> tuple[type[dict[str, Source]], tuple[dict[str, Source]]]:
        return dict, (dict(self),)


def roots_of(modules: Collection[str], path: str = "") -> tuple[str, ...]:
    """Return the roots of what was made in modules: their import paths, or the files of those outside packages.

    Args:
        modules: the import paths of the modules.
        path: where it is, as the command line takes it, if that is known.

    Returns:
        None at all if a part of it was typed: no file has that.
    """
    where = path.partition(":")[0] if ".py:" not in path else path.rpartition(":")[0]
    found = dict.fromkeys([shown_path(Path(where))] if where.endswith(".py") else [where] if where else [])
    for name in modules:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is None and is_beneath(name.partition(".")[0]):
            continue  # a namespace of operators, which torch makes: its version counts
        if file is None and name not in sys.builtin_module_names:
            return ()
        code = Path(file or "")
        if name == "__main__" and (code.suffix != ".py" or "site-packages" in code.parts):
            continue  # a command: here for a function in C, which has no module
        is_loose = "." not in name and code.suffix == ".py" and code.name != "__init__.py"
        found[shown_path(code) if is_loose and "site-packages" not in code.parts else name] = None
    return tuple(found)


def shown_path(file: Path) -> str:
    """Return a path as a record holds it: from the working directory, if it lies below it."""
    file, here = file.resolve(), Path.cwd()
    return file.relative_to(here).as_posix() if file.is_relative_to(here) else file.as_posix()
