"""A failure says once what was compared."""

from __future__ import annotations

import pytest

from gradspec.law import Verdict, broken
from gradspec.render import failure_text


def said(message: str, argument: str) -> list[str]:
    finding = broken(message, argument=argument)
    verdict = Verdict(spec="s", law="vjp", case="c", finding=finding)
    return failure_text(verdict).splitlines()[2:]


@pytest.mark.parametrize(
    ("message", "argument", "lines"),
    [
        (
            "gradient of `x` differs in 3 of 3 elements",
            "gradient of `x`, float64[3]",
            ["  gradient of `x` differs in 3 of 3 elements (float64[3])"],
        ),
        ("no gradient reaches `x`", "`x`", ["  no gradient reaches `x`"]),
        (
            "it raises while `x` is float32",
            "value under vmap, float64[2, 3]",
            ["  it raises while `x` is float32", "  value under vmap, float64[2, 3]"],
        ),
        # A letter within a word is no quantity.
        ("an exotic failure", "x", ["  an exotic failure", "  x"]),
        ("it differs", "", ["  it differs"]),
        ("", "gradient of `x`, float64[3]", ["  gradient of `x`, float64[3]"]),
    ],
)
def test_a_quantity_is_named_once(message: str, argument: str, lines: list[str]) -> None:
    assert said(message, argument) == lines
