"""A number in the prose of a docstring is listed in docstring_numbers.toml with what holds it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from pages.docstrings import docstrings, docstrings_of
from pages.numbers import unheld

LISTED = tomllib.loads((Path(__file__).parent / "docstring_numbers.toml").read_text(encoding="utf-8"))
SOURCE = r'''"""A module of 11 objects."""


class Seen:
    r"""It takes 12.5 ms, in `f(33)`, 7 times, :math:`x^{44}`, as in 1e-6 of all calls.

    .. math::

        y = 55 x

    It is so::

        a block of 66

    Between 77 and 88:

    >>> 4 * 25
    100

    References:
        `A paper <https://arxiv.org/abs/1705.07485>`_, 2017, section 3.14, not 2018.
    """

    def __call__(self):
        """Return 99."""

    async def wait(self):
        """Wait for 21 seconds."""

    def _hidden(self):
        """Return 22."""


def _hidden():
    """Return 23."""
'''


def test_a_number_in_a_docstring_is_listed() -> None:
    found = list(docstrings())
    assert len(found) > 1_500
    unlisted = [
        f"{docstring.file}:{line}: {number} is typed by hand: list under {docstring.name!r} what holds it"
        for docstring in found
        for line, number in docstring.numbers()
        if number not in LISTED.get(docstring.name, {})
    ]
    assert unlisted == []


def test_what_is_listed_is_still_in_its_docstring() -> None:
    found = {docstring.name: {number for _, number in docstring.numbers()} for docstring in docstrings()}
    listed = [(name, number) for name, held in LISTED.items() for number in held]
    assert [(name, number) for name, number in listed if number not in found.get(name, ())] == []


@pytest.mark.parametrize("name", LISTED)
def test_what_holds_a_number_has_it(name: str) -> None:
    faults = {number: unheld(number, held) for number, held in LISTED[name].items()}
    assert [f"{name}: {number}: {fault}" for number, fault in faults.items() if fault] == []


def test_of_more_than_one_place_each_has_to_hold() -> None:
    right, wrong = "tests/pages/numbers.toml: 3.11", "noxfile.py: there is no such text"
    assert unheld("3.11", [right, "It is a reason."]) == ""
    assert unheld("3.11", [right, wrong]) == "noxfile.py does not say 'there is no such text'"


def test_prose_is_told_from_the_rest() -> None:
    found = {docstring.name: list(docstring.numbers()) for docstring in docstrings_of(SOURCE, "a._b", "b.py")}
    assert found == {
        "a._b:Seen": [(5, "12.5"), (5, "1e-6"), (15, "77"), (15, "88"), (21, "3.14"), (21, "2018")],
        "a._b:Seen.__call__": [(25, "99")],
        "a._b:Seen.wait": [(28, "21")],
    }
    assert next(docstrings_of(SOURCE, "a.b", "b.py")).name == "a.b"
    law = f"{SOURCE}\nLAW = Law(doc=__doc__)\n"
    assert list(next(docstrings_of(law, "a._b", "b.py")).numbers()) == [(1, "11")]
