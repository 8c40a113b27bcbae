"""The specimens: each has a name of its own, in one file and over all of them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from gradspec_lab import specimens
from gradspec_lab.specimens.diseased import Disease, Specimens


def a_table(*names: str) -> Specimens:
    table = Specimens()
    for name in names:
        table[name] = Disease(spec=specimens.SCALE, caught_by={})
    return table


def test_a_name_is_taken_once_in_a_file() -> None:
    with pytest.raises(ValueError, match="two specimens are called 'off_by_one': give one of them another name"):
        a_table("off_by_one", "shuffled", "off_by_one")


def test_a_name_is_taken_once_over_all_files() -> None:
    first, second = (SimpleNamespace(DISEASED=a_table(name, "off_by_one")) for name in ("shuffled", "clipped"))
    with pytest.raises(ValueError, match="two specimens are called 'off_by_one'"):
        specimens._joined([first, second])  # type: ignore[list-item]  # a module in what is read of it


def test_a_table_that_two_files_enter_into_counts_once() -> None:
    home = SimpleNamespace(DISEASED=a_table("off_by_one"))
    assert list(specimens._joined([home, home])) == ["off_by_one"]  # type: ignore[list-item]  # as above
