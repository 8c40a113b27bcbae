"""The figures of a benchmark, as `gradspec-curves` draws them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def figure(
    title: str, x: str, values: Sequence[int], y: Mapping[str, str], lines: Mapping[str, Sequence[float]]
) -> dict[str, Any]:
    """Return a figure over a logarithmic axis.

    Args:
        title: of the figure.
        x: the label of the horizontal axis.
        values: of x, for all lines.
        y: the vertical axis as `gradspec-curves` reads it.
        lines: the values by the label of the line.
    """
    kept = [{"label": label, "runs": [[round(value, 4) for value in found]]} for label, found in lines.items()]
    return {"title": title, "x": {"label": x, "scale": "log", "values": list(values)}, "y": dict(y), "lines": kept}


def ratio(row: Mapping[str, Any], of: str, to: str) -> float:
    """Return the median of a ratio that a measurement holds."""
    (found,) = (r["median"] for r in row["ratios"] if (r["of"], r["to"]) == (of, to))
    return float(found)
