"""What is wrong with a gradient that differs: each answer is shown by a test of its own, and is not given without.

A test changes one thing (the cotangent, the point, an argument) or looks for the wrong numbers in another place. What
raises in a test, as a shape that does not fit, shows nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from torch import Tensor

from gradspec.law import Trial
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._lost import why_none
from gradspec.laws.tensor.support._other_calls import (
    beside_a_kink,
    in_contiguous_memory,
    with_a_negative_number,
    with_a_symmetric_argument,
    with_an_index_that_repeats,
    with_one_sample,
)
from gradspec.laws.tensor.support._other_cotangents import (
    conjugated,
    ignores_the_cotangent,
    in_another_order,
    of_equal_numbers,
    of_one_output,
)
from gradspec.laws.tensor.support._symptoms import (
    at_the_output,
    exchanged,
    in_some_places,
    of_a_part,
    of_forward,
    transposed,
)
from gradspec.laws.tensor.support._wrong import Wrong

#: In this order: what needs the fewest words to be mended comes first.
TESTS: tuple[Callable[[Wrong], str], ...] = (
    ignores_the_cotangent,
    exchanged,
    of_forward,
    transposed,
    conjugated,
    with_a_negative_number,
    with_an_index_that_repeats,
    beside_a_kink,
    in_another_order,
    of_one_output,
    in_some_places,
    at_the_output,
    of_a_part,
    with_a_symmetric_argument,
    in_contiguous_memory,
    with_one_sample,
    of_equal_numbers,
)


def why_wrong(trial: Trial, inputs: Inputs, name: str, v: tuple[Tensor, ...]) -> str:
    """Return what is wrong with the gradient of an argument, as far as a test shows it; empty where none does."""
    wrong = Wrong(trial, inputs, name, v)
    if quietly(lambda: wrong.given[name] is None):
        return quietly(lambda: why_none(trial, inputs, name)) or ""
    return next((said for test in TESTS if (said := quietly(lambda test=test: test(wrong)))), "")  # type: ignore[misc]


def unreduced(error: RuntimeError) -> str:
    """Say what backward returns that torch refuses: a number too few, or a gradient that is still broadcast."""
    if counts := re.search(r"incorrect number of gradients \(expected (\d+), got (\d+)\)", str(error)):
        return (
            f"backward returns {counts[2]} of {counts[1]} gradients: one for each argument of forward, or None for it"
        )
    found = re.search(
        r"returned an invalid gradient at index (\d+) - got \[(.*)\] but expected .* \[(.*)\]", str(error)
    )
    if found is None:
        return ""
    got, expected = ([int(n) for n in text.split(",") if n.strip()] for text in found.groups()[1:])
    rest = iter(got)
    if len(got) <= len(expected) or not all(n in rest for n in expected):
        return ""
    return f"sum what backward returns at place {found[1]} over the dimensions that broadcasting added to {expected}"


def quietly(call: Callable[[], Any]) -> Any:
    """Return what a call returns; None where it raises: it was to explain, and explains nothing then."""
    try:
        return call()
    except (Exception, SystemExit):
        return None
