"""How an error is shown in a record."""

import pytest

from gradspec.law import shown


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("at 0x7f25de8cf560", "ValueError: at 0x…"),
        ('File "/home/me/site-packages/torch/x.py", line 3', 'ValueError: File "…/x.py", line 3'),
        ("see https://pytorch.org/docs/stable/x.html", "ValueError: see https://pytorch.org/docs/stable/x.html"),
        ("two\n  lines", "ValueError: two lines"),
        ("shape (2/3)", "ValueError: shape (2/3)"),
    ],
)
def test_an_error_is_one_line_that_is_the_same_on_every_machine(message, expected):
    assert shown(ValueError(message)) == expected


def test_a_long_error_is_cut():
    assert len(shown(ValueError("x" * 1000))) == 401


class MuteError(Exception):
    def __str__(self):
        raise LookupError


def test_that_an_error_whose_text_raises_is_shown_by_its_type():
    assert shown(MuteError()) == "MuteError: (its text raised LookupError)"
