"""Where the ticks of an axis are, and where a value falls between its ends."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from gradspec_lab.sphinx.drawing._plot_record import Axis

#: About how many ticks an axis has.
TICKS = 5


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A map from values to [0, 1], with the values at which a tick is."""

    low: float
    high: float
    log: bool
    ticks: tuple[float, ...]

    def __call__(self, value: float) -> float:
        """Return where a value falls: 0 at the lower end, 1 at the upper one."""
        low, high, at = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        return (at - low) / (high - low)


def scale(axis: Axis, values: Iterable[float], *, snug: bool) -> Scale:
    """Return the scale of an axis.

    Args:
        axis: linear or logarithmic.
        values: all that it must show.
        snug: end the axis at the outermost values; otherwise at the ticks around them.
    """
    found = sorted(values)
    low, high = found[0], found[-1]
    log = axis.scale == "log"
    if low == high:
        low, high = (low / 2, high * 2) if log else (low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2)
    ticks = _log_ticks(low, high) if log else _linear_ticks(low, high)
    if snug:
        return Scale(low=low, high=high, log=log, ticks=tuple(t for t in ticks if low <= t <= high))
    return Scale(low=ticks[0], high=ticks[-1], log=log, ticks=ticks)


def tick_label(value: float, axis: Axis) -> str:
    """Return the text at a tick, without zeros that say nothing."""
    if axis.format.endswith("%"):
        return f"{100 * value:g}%"
    return f"{value:g}"


def _linear_ticks(low: float, high: float) -> tuple[float, ...]:
    """Return multiples of 1, 2 or 5 times a power of ten, from at most `low` to at least `high`."""
    power = 10.0 ** math.floor(math.log10((high - low) / TICKS))
    step = next(power * factor for factor in (1, 2, 5, 10) if (high - low) / (power * factor) <= TICKS)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(round(i * step, 12) for i in range(first, last + 1))


def _log_ticks(low: float, high: float) -> tuple[float, ...]:
    """Return powers of ten, and 2 and 5 times them where there are few, from at most `low` to at least `high`."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    factors = (1, 2, 5) if math.log10(high / low) <= 2 else (1,)
    stride = max(1, round((last - first) / TICKS))
    last += -(last - first) % stride
    candidates = [factor * 10.0**power for power in range(first, last + 1, stride) for factor in factors]
    start = max((i for i, value in enumerate(candidates) if value <= low * (1 + 1e-9)), default=0)
    stop = next((i for i, value in enumerate(candidates) if value >= high * (1 - 1e-9)), len(candidates) - 1)
    return tuple(candidates[start : max(stop, start + 1) + 1])
