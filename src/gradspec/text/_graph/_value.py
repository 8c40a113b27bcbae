"""The value of a Variable, at once or later, and how often it was assigned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from gradspec.text._data import Data, Kind, checked
from gradspec.text._graph._merge import render

if TYPE_CHECKING:
    from gradspec.text._graph._variable import Variable
    from gradspec.text._scheduling._pending import Pending


class Value:
    """The data of a Variable: given, on its way, or that of a merged gradient, which is written out when it is read."""

    _version = 0
    #: Of a merged gradient: what it is made of. Its data is None until somebody reads it.
    _sources: tuple[Variable, ...] = ()
    _kind: Kind | None = None
    #: Of an answer that is on its way: what to wait for.
    _pending: Pending | None = None
    #: Of an answer that has JSON data: the data, once it is there.
    _values: list[Any] | None = None
    _data: Data | None

    @property
    def data(self) -> Data:
        """The text, the number, or the list; to assign it moves `version`. Data on its way is waited for."""
        if self._data is None:
            self._data = render(cast("Variable", self)) if self._pending is None else self._pending.result()
        return self._data

    @data.setter
    def data(self, data: Data | Sequence[Any]) -> None:
        self._data = checked(data)
        self._version += 1
        self._sources, self._pending, self._kind, self._values = (), None, None, None
        self._assigned()

    @property
    def value(self) -> Any:
        """The answer as JSON data, where `chat` was given a schema, and else None; for a list, a list of them.

        It is waited for like `data`, and gone when `data` is assigned.
        """
        if not self._values and self._pending is not None:
            self._pending.result()
        return self._values[0] if self._values else None

    @property
    def version(self) -> int:
        """How often the data was assigned; `backward` refuses what was saved at another version."""
        return self._version

    def _assigned(self) -> None:
        """Hear that the data was assigned."""

    def __format__(self, spec: str) -> str:
        return format(self.data, spec) if spec else str(self)

    def __str__(self) -> str:
        return str(self.data)
