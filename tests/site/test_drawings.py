"""The drawings: a reader who comes from the search has the words marked that were searched, and no script fails."""

from __future__ import annotations

from pathlib import Path

from bs4 import BeautifulSoup


def test_no_word_is_marked_where_nothing_is_drawn(pages: list[Path]) -> None:
    # Sphinx draws a box around a found word in a drawing, and fails in a `title` and a `desc`, which have no place.
    texts = [
        (path.name, text)
        for path in pages
        if "<svg" in (html := path.read_text(encoding="utf-8"))
        for text in BeautifulSoup(html, "html.parser").select("article svg title, article svg desc")
    ]
    assert texts
    assert [(page, str(text)[:80]) for page, text in texts if "nohighlight" not in text.get("class", [])] == []
