"""A mistake in the case of a text spec is an error of the spec: no law blames the Function for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from gradspec import TextCase, TextSpec, verify
from gradspec.law import Status
from gradspec.text import Variable


@pytest.mark.parametrize(
    ("wants", "feedback", "says"),
    [
        (True, ("one", "two"), "case 'a case' says something of 2 outputs, and 1 want it"),
        (False, ("one",), "case 'a case' says something of 1 outputs, and 0 want it"),
    ],
)
def test_feedback_for_another_number_of_outputs(wants: bool, feedback: tuple[str, ...], says: str) -> None:
    def cases(make: Callable[..., Variable]) -> Iterator[TextCase]:
        yield TextCase(name="a case", args=(make("a") if wants else Variable("a"),), feedback=feedback)

    spec = TextSpec(name="add", function=lambda x: x + "!", primal=lambda x: x + "!", cases=cases, wrt=("x",))
    failures = verify([spec]).failures
    assert failures
    assert {(found.finding.status, found.finding.message) for found in failures} == {(Status.ERROR, says)}
