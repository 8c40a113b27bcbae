"""Hypothesis looks for an example on which a function and its reference differ, and makes it small."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, seed, settings

from fuzz.compare import difference
from fuzz.examples import Example, examples
from gradspec.spec import FunctionSpec


def search(
    spec: FunctionSpec,
    count: int,
    *,
    counts: Counter[str] | None = None,
    how: Counter[str] | None = None,
    start: int | None = None,
) -> None:
    """Try so many examples of a function.

    Args:
        spec: of the function.
        count: how many.
        counts: how many were tried, by the names of their transforms, the innermost first.
        how: how they agree: in values, in that both raise, or not at all.
        start: the seed of the search; the same search each time unless given.

    Raises:
        AssertionError: an example differs; the message has its Python.
    """

    @settings(
        max_examples=count,
        derandomize=start is None,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(examples(spec))
    def agrees(example: Example) -> None:
        if counts is not None:
            counts[" ".join(example.transforms)] += 1
        said = difference(spec, example, how)
        assert not said, f"{said}\n{example!r}"

    run: Any = agrees if start is None else seed(start)(agrees)
    run()
