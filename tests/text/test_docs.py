"""The examples of the pages run."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs" / "text"


@pytest.mark.parametrize("page", ["index", "function", "variable", "optimizer", "engine", "events", "cassette"])
def test_every_example_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # A fence ends an output that is right above it.
    text = re.sub(r"^```.*$", "", (PAGES / f"{page}.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(
        doctest.DocTestParser().get_doctest(text, {"__name__": "__main__"}, page, None, 0)
    )
    assert (found.failed, found.attempted > 5) == (0, True)
