"""Where the mean of scores lies, by what few examples can tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist, fmean, stdev

#: The share of intervals that hold the mean of all such examples.
LEVEL = 0.95
Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
#: Scores that agree in so many digits are one: the rest is rounding.
DIGITS = 12


def interval(scores: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean; None if the scores do not say how much they vary.

    Scores that are all 0 or 1 are a proportion and get Wilson's interval, which is not empty if they are all alike.
    Others get Student's; it takes two different ones.

    Example:
        >>> low, high = interval([0, 0, 0])
        >>> f"{low:.3f} to {high:.3f}"
        '0.000 to 0.561'

    References:
        `Probable inference, the law of succession, and statistical inference
        <https://doi.org/10.1080/01621459.1927.10502953>`_, Wilson, 1927.
        `The probable error of a mean <https://doi.org/10.1093/biomet/6.1.1>`_, Student, 1908.
    """
    count, mean = len(scores), fmean(scores)
    if all(score in (0, 1) for score in scores):
        # The p for which |mean - p| <= z sqrt(p (1 - p) / n): the roots of a quadratic.
        centre = (mean + Z**2 / (2 * count)) / (1 + Z**2 / count)
        half = Z * math.sqrt(mean * (1 - mean) / count + Z**2 / (4 * count**2)) / (1 + Z**2 / count)
        return (centre - half if mean > 0 else 0.0), (centre + half if mean < 1 else 1.0)
    if len({round(score, DIGITS) for score in scores}) < 2:
        return None
    half = student(count - 1) * stdev(scores) / math.sqrt(count)  # mean +- t s / sqrt(n)
    return mean - half, mean + half


@lru_cache
def student(freedom: int) -> float:
    """Return the t that a variable of Student's distribution stays below in absolute value, with the level.

    Example:
        >>> f"{student(4):.3f}"
        '2.776'
    """
    if freedom > 100:
        # The expansion in 1 / freedom, Abramowitz and Stegun, 26.7.5; the next term is below 1e-5.
        terms = (Z, (Z**3 + Z) / 4, (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96)
        return math.fsum(term / freedom**power for power, term in enumerate(terms))
    low, high = 0.0, 1.0
    while _inside(high, freedom) < LEVEL:
        high *= 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _inside(middle, freedom) < LEVEL else (low, middle)
    return high


def _inside(t: float, freedom: int) -> float:
    """Return the probability of [-t, t]: Abramowitz and Stegun, 26.7.3 for odd degrees of freedom, 26.7.4 for even."""
    angle = math.atan(t / math.sqrt(freedom))
    odd = freedom % 2
    term, total = (math.cos(angle) if odd else 1.0), 0.0
    for k in range(2 + odd, freedom + 1, 2):  # cos + 2/3 cos^3 + ..., or 1 + 1/2 cos^2 + 3/8 cos^4 + ...
        total += term
        term *= (k - 1) / k * math.cos(angle) ** 2
    return 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
