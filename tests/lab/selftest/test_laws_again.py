"""A subject that some laws are asked about again keeps what the others say of it."""

import pytest

from gradspec_lab.selftest._record import Subject

ORDER = ("primal", "vjp", "jvp")


def subject(*killed_by: str, stage: int = 1) -> Subject:
    return Subject(sort="mutant", name="m", group="g", killed_by=killed_by, stage=stage)


@pytest.mark.parametrize(
    ("held", "found", "is_now"),
    [
        (subject("jvp"), subject("vjp"), subject("vjp", "jvp")),
        (subject("vjp", "jvp"), subject("vjp"), subject("vjp", "jvp")),
        (subject("vjp", "jvp"), subject(), subject("jvp")),
        (subject("jvp", stage=2), subject("vjp", stage=1), subject("vjp", stage=1)),
        (subject("primal", stage=1), subject("vjp", stage=2), subject("primal", stage=1)),
        (subject(stage=3), subject("vjp", stage=2), subject("vjp", stage=2)),
    ],
    ids=["one more", "as before", "no more", "in an earlier stage", "in a later stage", "a survivor"],
)
def test_what_a_law_says_today_replaces_what_it_said(held: Subject, found: Subject, is_now: Subject) -> None:
    assert held.with_laws(found, ["vjp"], ORDER) == is_now
