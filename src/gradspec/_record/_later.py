"""Sources that are computed when somebody asks for one: a report that is not saved never does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from gradspec._record._source import Source


class SourcesLater(Mapping[str, Source]):
    """A mapping of sources by name.

    Args:
        compute: returns the sources; called once, when the first of them is read.
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
