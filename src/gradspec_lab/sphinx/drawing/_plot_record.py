"""The record of an experiment, read and checked: figures of lines with bands, numbers, and where they come from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradspec._record import RecordError


@dataclass(frozen=True, kw_only=True)
class Axis:
    """What an axis shows, and how."""

    label: str
    #: "linear" or "log".
    scale: str = "linear"
    #: A Python format of its numbers.
    format: str = ".3g"
    #: Whether it shows 0, so that a height is to another as the numbers are.
    zero: bool = False


@dataclass(frozen=True, kw_only=True)
class Line:
    """The values of one or several runs; their mean and range are drawn."""

    label: str
    x: tuple[float, ...]
    runs: tuple[tuple[float, ...], ...]

    @property
    def mean(self) -> tuple[float, ...]:
        """The mean over the runs."""
        return tuple(sum(values) / len(values) for values in zip(*self.runs, strict=True))

    @property
    def low(self) -> tuple[float, ...]:
        """The lowest of the runs."""
        return tuple(min(values) for values in zip(*self.runs, strict=True))

    @property
    def high(self) -> tuple[float, ...]:
        """The highest of the runs."""
        return tuple(max(values) for values in zip(*self.runs, strict=True))


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Lines over one pair of axes."""

    title: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...]


def figure_of(record: Mapping[str, Any], name: str, *, log: bool = False, zero: bool = False) -> Figure:
    """Return a figure of a record.

    Args:
        record: what `read_experiment` returned.
        name: of the figure.
        log: make the vertical axis logarithmic, whatever the record says.
        zero: let the vertical axis show 0, whatever the record says.

    Raises:
        KeyError: the record holds no such figure; the message says which it holds.
        RecordError: what it holds cannot be drawn.
    """
    figures = record.get("figures") or {}
    if name not in figures:
        raise KeyError(f"it holds no figure {name!r} (it holds: {', '.join(figures) or 'none'})")
    try:
        figure = _figure(figures[name], log=log, zero=zero)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(f"the figure {name!r} cannot be drawn ({type(error).__name__}: {error})") from None
    return figure


def number_of(record: Mapping[str, Any], path: str) -> Any:
    """Return the value at a dotted path; a number in the path counts the items of a list, from 0.

    Raises:
        KeyError: there is none; the message says where the path ends, and what is there instead.
    """
    value: Any = record
    for i, step in enumerate(names := path.split(".")):
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            held = ", ".join(value) if isinstance(value, Mapping) else f"a {type(value).__name__}"
            raise KeyError(f"there is no {step!r} in {'.'.join(names[:i]) or 'it'} (it holds: {held})")
    return value


def checked_axis(axis: Axis) -> Axis:
    """Return an axis that can be drawn.

    Raises:
        ValueError: its scale is unknown, or its format is none.
    """
    if axis.scale not in ("linear", "log"):
        raise ValueError(f"the scale {axis.scale!r} is neither linear nor log")
    if axis.scale == "log" and axis.zero:
        raise ValueError(f"the log axis {axis.label!r} cannot show 0")
    format(1.0, axis.format)
    return axis


def finite_numbers(values: Sequence[float], axis: Axis) -> tuple[float, ...]:
    """Return the numbers that an axis is to show.

    Raises:
        ValueError: it cannot show one of them.
    """
    found = tuple(float(value) for value in values)
    if wrong := [value for value in found if not math.isfinite(value) or (axis.scale == "log" and value <= 0)]:
        raise ValueError(f"the {axis.scale} axis {axis.label!r} cannot show {wrong[0]}")
    return found


def _figure(data: Mapping[str, Any], *, log: bool, zero: bool) -> Figure:
    x, y = dict(data["x"]), Axis(**data["y"])
    y = replace(y, scale="log") if log else y
    y = replace(y, zero=True) if zero else y
    shared = x.pop("values", None)
    horizontal = Axis(**x)
    for axis in (horizontal, y):
        checked_axis(axis)
    lines = tuple(_line(line, line.get("x", shared), horizontal, y) for line in data["lines"])
    if not lines:
        raise ValueError("no line")
    return Figure(title=data["title"], x=horizontal, y=y, lines=lines)


def _line(data: Mapping[str, Any], x: Sequence[float], horizontal: Axis, vertical: Axis) -> Line:
    line = Line(
        label=data["label"],
        x=finite_numbers(x, horizontal),
        runs=tuple(finite_numbers(r, vertical) for r in data["runs"]),
    )
    if not line.x or not line.runs or {len(run) for run in line.runs} != {len(line.x)}:
        raise ValueError(f"the runs of {line.label!r} are not of {len(line.x)} values each")
    return line
