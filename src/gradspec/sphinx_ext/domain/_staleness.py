"""Whether a record is of today's source: its keys are computed again from files, importing nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from gradspec._record import Source, stale_names


class Today:
    """The sources of records as their files are now; each is looked up once.

    Args:
        folders: from where paths of files in a record may count, beside the working directory.
    """

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        self._folders = tuple(folders)
        self._found: dict[tuple[tuple[str, ...], str], tuple[Source, list[str], list[str]]] = {}

    def changed(self, sources: Mapping[str, Source]) -> frozenset[str]:
        """Return the names of sources that are not as they were measured."""
        return frozenset(stale_names(sources, {name: self._of(source)[0] for name, source in sources.items()}))

    def is_current(self, sources: Mapping[str, Source]) -> bool:
        """Whether all sources are as they were measured."""
        return not self.changed(sources)

    def files(self, source: Source) -> list[str]:
        """Return the files that a source depends on, without those of gradspec itself."""
        return self._of(source)[1]

    def missing(self, source: Source) -> list[str]:
        """Return the modules and files at which a source begins and that are nowhere."""
        return self._of(source)[2]

    def _of(self, source: Source) -> tuple[Source, list[str], list[str]]:
        name = (source.roots, source.facts)
        if name not in self._found:
            reached = source.reached(*self._folders)
            files, missing = sorted(map(str, reached.files)), sorted(reached.missing)
            self._found[name] = source.as_of(reached), files, missing
        return self._found[name]
