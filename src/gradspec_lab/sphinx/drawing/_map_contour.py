"""Where a grid of values is at a level or above: closed lines, by marching squares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]
#: A side of a square of the grid, as its two corners in order.
Side: TypeAlias = tuple[tuple[int, int], tuple[int, int]]


def regions(
    xs: Sequence[float], ys: Sequence[float], values: Sequence[Sequence[float]], level: float
) -> list[list[Point]]:
    """Return the borders of where the values are at the level or above, each a closed line.

    Between the points of the grid the values are taken to be linear along the sides of its squares. A border that
    leaves the grid runs on along its edge.

    Args:
        xs: where the columns are.
        ys: where the rows are.
        values: of each row.
        level: from which on a value is inside.
    """
    # A ring of points outside everything, at the place of the edge, closes the lines along the edge.
    xs, ys = [xs[0], *xs, xs[-1]], [ys[0], *ys, ys[-1]]
    outside = [-math.inf] * len(xs)
    grid = [outside, *([-math.inf, *row, -math.inf] for row in values), outside]
    following: dict[Side, Side] = {}
    for j in range(len(ys) - 1):
        for i in range(len(xs) - 1):
            following.update(_steps(grid, i, j, level))

    def point(side: Side) -> Point:
        ((i, j), (k, m)) = side
        a, b = grid[j][i], grid[m][k]
        if math.isinf(b):
            part = 0.0
        elif math.isinf(a):
            part = 1.0
        else:
            part = (level - a) / (b - a)
        return xs[i] + part * (xs[k] - xs[i]), ys[j] + part * (ys[m] - ys[j])

    found = []
    while following:
        side, after = following.popitem()
        line = [point(side)]
        while after in following:
            line.append(point(after))
            after = following.pop(after)
        found.append(line)
    return found


def _steps(grid: Sequence[Sequence[float]], i: int, j: int, level: float) -> list[tuple[Side, Side]]:
    """Return from which side to which the border crosses a square, what is inside always on the same hand."""
    around = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)]
    inside = [grid[n][m] >= level for m, n in around]
    leaves: list[tuple[int, Side]] = []
    enters: list[tuple[int, Side]] = []
    for k in range(4):
        a, b = around[k], around[(k + 1) % 4]
        if inside[k] != inside[(k + 1) % 4]:
            (leaves if inside[k] else enters).append((k, (min(a, b), max(a, b))))
    if len(leaves) < 2:
        return [(out, into) for (_, out), (_, into) in zip(leaves, enters, strict=True)]
    # Opposite corners are inside: the mean of the four says whether they hang together.
    together = sum(grid[n][m] for m, n in around) / 4 >= level
    turn = 1 if together else 3
    return [(out, next(into for k, into in enters if k == (start + turn) % 4)) for start, out in leaves]
