"""The drawings: a reader who comes from the search has the words marked that were searched, and no script fails."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bs4 import Tag


def test_no_word_is_marked_where_nothing_is_drawn(articles: Mapping[Path, Tag]) -> None:
    # Sphinx draws a box around a found word in a drawing, and fails in a `title` and a `desc`, which have no place.
    texts = [
        (path.name, text)
        for path, article in articles.items()
        for drawing in article.find_all("svg")
        for text in drawing.find_all(["title", "desc"])
    ]
    assert texts
    assert [(page, str(text)[:80]) for page, text in texts if "nohighlight" not in text.get("class", [])] == []
