"""How much better new texts are than the old ones, by what both scored on the same examples."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev
from typing import Any

from gradspec.text.optim._checkpoint import plain
from gradspec.text.optim._interval import DIGITS, Z, student

#: The chance to show a difference that is there, with as many examples as are needed.
POWER = 0.8
#: Five points: the difference of means that the numbers of examples are for.
POINTS = 0.05


@dataclass(frozen=True, kw_only=True)
class Gain:
    """A mean difference of scores, after less before, on examples that no step has used."""

    #: The mean of the differences.
    mean: float
    #: Where its 95 % interval begins; None if the differences do not say how much they vary.
    low: float | None
    #: Its upper end.
    high: float | None
    #: How many different examples were scored; a copy of an example says nothing more.
    examples: int
    #: How many examples a difference of 5 points needs, by how much these differences vary; None if they do not say.
    needed: int | None

    @property
    def shown(self) -> bool:
        """Whether the interval lies above 0."""
        return self.low is not None and self.low > 0

    @classmethod
    def of(cls, before: Sequence[float], after: Sequence[float], examples: Sequence[Any] | None = None) -> Gain:
        """Return the gain of paired scores.

        Differences of scores that are all 0 or 1 get Tango's interval, by the score test. Others get Student's, which
        takes two different ones.

        Args:
            before: The score of each example before.
            after: The score of each example after, in the same order.
            examples: The examples; copies of one count as one, with the mean of their differences. None if all differ.

        Raises:
            ValueError: there are no scores, not as many after as before, or one that is no number.

        Example:
            >>> print(Gain.of([0, 0, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]))
            +0.833 (+0.118 to +0.970, 6 examples): shown to be better
            >>> print(Gain.of([0, 1, 1, 0], [1, 1, 0, 1]))
            +0.250 (-0.505 to +0.778, 4 examples): not shown to be better

        References:
            `Equivalence test and confidence interval for the difference in proportions for the paired-sample design
            <https://pubmed.ncbi.nlm.nih.gov/9595618/>`_, Tango, 1998.
            `The probable error of a mean <https://doi.org/10.1093/biomet/6.1.1>`_, Student, 1908.
        """
        if not before or len(before) != len(after) or not all(map(math.isfinite, (*before, *after))):
            raise ValueError(
                f"a gain takes as many scores after as before, each a number: got {before!r} and {after!r}"
            )
        differences = _of_each(before, after, examples)
        low, high = paired_interval(differences) or (None, None)
        spread = stdev(differences) ** 2 if len(set(differences)) > 1 else None
        return cls(
            mean=fmean(differences),
            low=low,
            high=high,
            examples=len(differences),
            needed=None if spread is None else _needed(spread, spread),
        )

    def __str__(self) -> str:
        where = "no interval" if self.low is None or self.high is None else f"{self.low:+.3f} to {self.high:+.3f}"
        verdict = "shown to be better" if self.shown else "not shown to be better"
        return f"{self.mean:+.3f} ({where}, {self.examples} example{'' if self.examples == 1 else 's'}): {verdict}"


def paired_interval(differences: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean of paired differences; None if they do not say how much they vary."""
    count = len(differences)
    if all(difference in (-1, 0, 1) for difference in differences):
        return _score_interval(count, list(differences).count(1), list(differences).count(-1))
    if len(set(differences)) < 2:
        return None
    middle, half = fmean(differences), student(count - 1) * stdev(differences) / math.sqrt(count)
    return middle - half, middle + half


def _score_interval(count: int, better: int, worse: int) -> tuple[float, float]:
    """Return every difference that the score test does not reject, for scores of 0 or 1."""

    def z(difference: float) -> float:
        # (b - c - n d) / sqrt(n (2 q + d (1 - d))), with q, the chance to get worse, the likeliest one for this d:
        # the larger root of 2 n q^2 - (b + c - (2 n - b + c) d) q - c d (1 - d).
        linear = (2 * count - better + worse) * difference - better - worse
        constant = -worse * difference * (1 - difference)
        likeliest = (math.sqrt(max(0.0, linear**2 - 8 * count * constant)) - linear) / (4 * count)
        off, variance = (
            better - worse - count * difference,
            count * (2 * likeliest + difference * (1 - difference)),
        )
        return off / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, off) if off else 0.0

    def where(level: float, low: float, high: float) -> float:  # z falls as the difference grows
        while low < (middle := (low + high) / 2) < high:
            low, high = (middle, high) if z(middle) > level else (low, middle)
        return low

    mean = (better - worse) / count
    return where(Z, -1.0, mean), where(-Z, mean, 1.0)


def examples_needed(changed: float, difference: float = POINTS) -> int:
    """Return how many examples show a difference of means with a chance of 80 %, if scores are 0 or 1.

    Args:
        changed: The share of examples that are right with one text and wrong with the other. It is at least the
            difference; two texts that have nothing to do with each other change half of the examples at most.
        difference: The difference of means.

    Raises:
        ValueError: the difference is not above 0, or larger than the share, or that is above 1.

    Example:
        >>> examples_needed(0.05), examples_needed(0.5)
        (155, 1568)

    References:
        `Sample size for testing differences in proportions for the paired-sample design
        <https://doi.org/10.2307/2531961>`_, Connor, 1987.
    """
    if not 0 < difference <= changed <= 1:
        raise ValueError(
            f"the difference is more than 0, and at most the share of examples that change, which is at most 1: got "
            f"changed={changed!r} and difference={difference!r}"
        )
    return _needed(changed, changed - difference**2, difference)


def _needed(under_none: float, under_it: float, difference: float = POINTS) -> int:
    """Return n so that z_level s_0 / sqrt(n) + z_power s_1 / sqrt(n) is the difference, by the variances s^2."""
    power = NormalDist().inv_cdf(POWER)
    return math.ceil(((Z * math.sqrt(under_none) + power * math.sqrt(under_it)) / difference) ** 2)


def keys_of(examples: Sequence[Any]) -> list[Any]:
    """Return what tells each example from the others; copies have the same."""
    return [_key(example, place) for place, example in enumerate(examples)]


def _of_each(before: Sequence[float], after: Sequence[float], examples: Sequence[Any] | None) -> list[float]:
    """Return the difference of each example, of copies their mean."""
    found: dict[Any, list[float]] = {}
    keys = range(len(before)) if examples is None else keys_of(examples)
    for key, old, new in zip(keys, before, after, strict=True):
        found.setdefault(key, []).append(new - old)
    return [round(fmean(differences), DIGITS) for differences in found.values()]  # 0.3 - 0.2 is not 0.2 - 0.1


def _key(example: Any, place: int) -> Any:
    try:
        return json.dumps(example, sort_keys=True, default=plain)
    except (TypeError, ValueError, RecursionError):
        return place  # what cannot be told from another one is taken as different
