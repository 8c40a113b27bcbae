"""The examples of an optimization: which ones train, validate and test, and which ones a step takes."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Example = tuple[Any, Any]
NAMES = ("training", "validation", "test")


@dataclass(frozen=True, kw_only=True)
class Examples:
    """Pairs of an input and its target, in three parts."""

    #: Steps draw their minibatches from these.
    training: Sequence[Example]
    #: A new text is accepted if it does better on these.
    validation: Sequence[Example]
    #: What came of it is measured on these, once.
    test: Sequence[Example]


def split(data: Any, parts: tuple[float, float, float], seed: int) -> Examples:
    """Return data in three parts, drawn by a seed; a mapping with these names is taken as it is.

    Example:
        >>> found = split([(i, i) for i in range(10)], (0.5, 0.3, 0.2), seed=0)
        >>> len(found.training), len(found.validation), len(found.test)
        (5, 3, 2)
    """
    if isinstance(data, Mapping):
        if not {"training", "validation"} <= set(data) <= set(NAMES):
            raise ValueError(f"data in parts has the parts {', '.join(NAMES)}, the last if you like; not {[*data]}")
        found = Examples(**{name: _pairs(data.get(name, ())) for name in NAMES})
    else:
        if not _are_parts(parts) or not math.isclose(math.fsum(parts), 1):
            raise ValueError(f"parts says which part of the data trains, validates and tests, 1 in sum; not {parts!r}")
        pairs = _pairs(data)
        random.Random(f"split {seed}").shuffle(pairs)
        first, second = (round(len(pairs) * math.fsum(parts[:end])) for end in (1, 2))
        found = Examples(training=pairs[:first], validation=pairs[first:second], test=pairs[second:])
    for name in NAMES[:2]:
        if not getattr(found, name):
            raise ValueError(f"there is no example for {name}; give more data, or another split")
    return found


def minibatch(size: int, batch: int, step: int, seed: int) -> list[int]:
    """Return the places of the examples of a step: every example once, in an order drawn again, then again.

    Example:
        >>> sorted(minibatch(4, 2, 0, seed=0) + minibatch(4, 2, 1, seed=0))
        [0, 1, 2, 3]
    """
    places: list[int] = []
    at = step * batch
    while len(places) < min(batch, size):
        turn, begin = divmod(at + len(places), size)
        order = list(range(size))
        random.Random(f"batch {seed} {turn}").shuffle(order)
        places.append(order[begin])
    return places


def _are_parts(parts: object) -> bool:
    if not isinstance(parts, tuple | list) or len(parts) != 3:
        return False
    return all(isinstance(part, int | float) and 0 <= part <= 1 for part in parts)


def _pairs(data: Any) -> list[Example]:
    if not isinstance(data, Iterable):
        raise TypeError(f"data is a list of examples, pairs of an input and its target; not {data!r}")
    pairs = list(data)
    for place, pair in enumerate(pairs):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(f"an example is a pair of an input and its target; number {place} is {pair!r}")
    return [(pair[0], pair[1]) for pair in pairs]
