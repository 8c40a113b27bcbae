"""The list of the laws: each law has a row, a link to its page and a sentence."""

from __future__ import annotations

from pathlib import Path

from bs4 import BeautifulSoup


def test_every_page_of_a_law_is_in_the_list_with_a_sentence(site: Path) -> None:
    table = BeautifulSoup((site / "laws" / "index.html").read_text(encoding="utf-8"), "html.parser").select_one(
        "table.gradspec-law-list"
    )
    assert table is not None
    rows = {}
    for row in table.select("tbody tr"):
        if link := row.find("a"):
            rows[str(link["href"]).partition("#")[0]] = row.find_all("td")[1].get_text()
    pages = {path.name for path in (site / "laws").glob("*.html")} - {"index.html", "kill-matrix.html"}
    assert pages
    assert set(rows) == pages
    assert [page for page, sentence in rows.items() if not sentence.endswith(".")] == []


def test_each_matrix_of_what_was_measured_has_a_title(site: Path) -> None:
    soup = BeautifulSoup((site / "measured.html").read_text(encoding="utf-8"), "html.parser")
    titles = [title.get_text() for title in soup.select("section#what-was-measured p.rubric")]
    assert titles == ["Functions", "Operators", "Modules", "Text operations"]
    assert len(soup.select("table.gradspec-matrix")) == len(titles)
