"""What the comparison with torch lets pass, and what the page on the engine says of it, are the same list."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = Path(__file__).parents[3] / "docs" / "text" / "engine.md"
MARK = re.compile(r"^\s*(?:# )?Differs: (.+)$", re.MULTILINE)


def rows() -> list[str]:
    """Return what torch does, of each row of the table."""
    table = PAGE.read_text(encoding="utf-8").partition("| torch 2.13 |")[2].splitlines()[2:]
    return [line.split(" | ")[0].removeprefix("| ") for line in table if line.startswith("|")]


def marks() -> list[str]:
    """Return the deviations that the comparison allows for, or that a test of ours shows."""
    files = [*sorted(TESTS.glob("parity/*.py")), *sorted(TESTS.glob("test_*.py"))]
    return [mark for file in files if file != Path(__file__) for mark in MARK.findall(file.read_text(encoding="utf-8"))]


def test_each_deviation_has_a_row_and_each_row_a_deviation() -> None:
    table, found = rows(), marks()
    assert [mark for mark in found if sum(row.startswith(mark) for row in table) != 1] == []
    assert [row for row in table if sum(row.startswith(mark) for mark in found) != 1] == []


def test_none_is_hidden_in_an_empty_list() -> None:
    assert len(rows()) == len(marks()) > 15
