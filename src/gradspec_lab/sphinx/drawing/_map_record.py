"""A map of a record: a value at each point of a grid over two axes, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gradspec.report import RecordError
from gradspec_lab.sphinx.drawing._plot_record import Axis, checked_axis, finite_numbers


@dataclass(frozen=True, kw_only=True)
class Map:
    """A value over two axes."""

    title: str
    x: Axis
    y: Axis
    value: Axis
    #: Where the columns and the rows of the grid are, increasing.
    columns: tuple[float, ...]
    rows: tuple[float, ...]
    #: The values of each row of the grid, from the lowest row up.
    values: tuple[tuple[float, ...], ...]

    def at(self, x: float, y: float) -> float:
        """Return the value at a point of the grid."""
        return self.values[self.rows.index(y)][self.columns.index(x)]


def map_of(record: Mapping[str, Any], name: str) -> Map:
    """Return a map of a record.

    Raises:
        KeyError: the record holds no such map; the message says which it holds.
        RecordError: what it holds cannot be drawn.
    """
    maps = record.get("maps") or {}
    if name not in maps:
        raise KeyError(f"it holds no map {name!r} (it holds: {', '.join(maps) or 'none'})")
    try:
        found = _map(maps[name])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(f"the map {name!r} cannot be drawn ({type(error).__name__}: {error})") from None
    return found


def _map(data: Mapping[str, Any]) -> Map:
    sides = {side: dict(data[side]) for side in ("x", "y")}
    columns, rows = (sides[side].pop("values") for side in ("x", "y"))
    x, y, value = (checked_axis(Axis(**given)) for given in (*sides.values(), data["value"]))
    made = Map(
        title=data["title"],
        x=x,
        y=y,
        value=value,
        columns=finite_numbers(columns, x),
        rows=finite_numbers(rows, y),
        values=tuple(finite_numbers(row, value) for row in data["rows"]),
    )
    for axis, places in ((x, made.columns), (y, made.rows)):
        if len(places) < 2 or list(places) != sorted(set(places)):
            raise ValueError(f"the values of {axis.label!r} are not two or more that increase: {list(places)}")
    shape = (len(made.rows), {len(row) for row in made.values})
    if shape != (len(made.values), {len(made.columns)}):
        raise ValueError(f"the rows are not {len(made.rows)} of {len(made.columns)} values each")
    return made
