"""The examples of the pages run."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs" / "text"


@pytest.mark.parametrize("page", ["index", "function", "variable", "optimizer"])
def test_every_example_of_a_page_runs(page: str) -> None:
    found = doctest.testfile(str(PAGES / f"{page}.md"), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert (found.failed, found.attempted > 5) == (0, True)
