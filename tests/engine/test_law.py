"""How an error is shown in a record."""

from dataclasses import replace

import pytest

from gradspec.law import broken, shown


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


STEERING = "\x1b[2K\x07 \x9b1A \u202eright\u2066 \u200f\r\x7f"
SEEN = r"\x1b[2K\x07 \x9b1A \u202eright\u2066 \u200f\r\x7f"


def test_what_steers_a_terminal_or_an_eye_is_an_escape_in_every_text_of_a_finding():
    details = {"output": f"1\t2\n{STEERING}", "lines": [STEERING], "inner": {"raised": STEERING}, "number": 3}
    finding = broken(STEERING, likely=STEERING, got=f"[{STEERING}]", details=details)

    assert (finding.message, finding.likely, finding.got) == (SEEN, SEEN, f"[{SEEN}]")
    assert finding.details == {"output": f"1\t2\n{SEEN}", "lines": [SEEN], "inner": {"raised": SEEN}, "number": 3}
    assert replace(finding, index="[0]").message == SEEN


def test_an_error_steers_nothing():
    assert shown(ValueError("\x1b[31mred \u202eder")) == r"ValueError: \x1b[31mred \u202eder"
