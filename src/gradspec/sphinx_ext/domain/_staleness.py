"""Whether a record still tells of today's source: its keys are computed anew, from files, importing nothing.

That takes seconds for all of the laws, so an incremental build remembers what the files of each looked like.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from gradspec._record import Reach, Source, reach_from, stale_names


class Today:
    """The sources of records as their files are now.

    Args:
        seen: what was found in earlier builds, by the roots of a source; filled in here.
        folders: from where paths of files in a record may count, beside the working directory.
    """

    def __init__(self, seen: MutableMapping[str, Any] | None = None, folders: Iterable[Path] = ()) -> None:
        self._seen: MutableMapping[str, Any] = {} if seen is None else seen
        self._folders = tuple(folders)
        self._looks: dict[str, str] = {}

    def changed(self, sources: Mapping[str, Source]) -> frozenset[str]:
        """Return the names of sources that are not as they were measured; see `stale_names`."""
        return frozenset(stale_names(sources, {name: self.of(source) for name, source in sources.items()}))

    def is_current(self, sources: Mapping[str, Source]) -> bool:
        """Whether all sources are as they were measured."""
        return not self.changed(sources)

    def of(self, source: Source) -> Source:
        """Return a source as its files are now."""
        key, documented, _ = self._found(source)
        return replace(source, key=key, documented=documented)

    def files(self, source: Source) -> list[str]:
        """Return the files that a source depends on."""
        return list(self._found(source)[2])

    def _found(self, source: Source) -> tuple[str, str, list[str]]:
        name = repr((replace(source, key="", documented=""), self._folders))
        if (known := self._seen.get(name)) is not None:
            group, looks, key, documented, files = known
            if self._look_of_all(group) == looks:
                return key, documented, files
        found = source.today(self._reach)
        closure = found.closure(self._reach)  # of where it is now
        files = [str(file) for file in closure.files]
        watched = sorted({*map(str, closure.imported), *files})
        if watched:  # of a source that is nowhere there is nothing to watch
            group = f"files {hash_of_texts(watched)}"  # many sources share one list
            self._seen[group] = watched
            self._seen[name] = (group, self._look_of_all(group), found.key, found.documented, files)
        return found.key, found.documented, files

    def _look_of_all(self, group: str) -> str:
        if group not in self._looks:
            self._looks[group] = hash_of_texts(map(self._look, self._seen[group]))
        return self._looks[group]

    @cached_property
    def _reach(self) -> Reach:
        return reach_from(*self._folders)

    def _look(self, name: str) -> str:
        """Return what a file looks like from outside: Sphinx, too, takes one of the same time for the same."""
        if name not in self._looks:
            file = Path(name)
            stat = file.stat() if file.is_file() else None
            self._looks[name] = f"{stat.st_mtime_ns} {stat.st_size}" if stat else "is missing"
        return self._looks[name]


def hash_of_texts(texts: Iterable[str]) -> str:
    """Return a hash of some texts in their order."""
    return sha256("\n".join(texts).encode()).hexdigest()[:16]
