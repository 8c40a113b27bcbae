"""Every page has a twin in Markdown that holds its tables and its code, and `llms.txt` lists every twin."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Tag
from markdown_it import MarkdownIt

#: Pages that are made of no document: an index, the search, source code.
MADE = ("genindex.html", "search.html", "py-modindex.html", "_modules", "gradspec-")


def is_document(path: Path, site: Path) -> bool:
    return not path.relative_to(site).parts[0].startswith(MADE)


def flat(text: str) -> str:
    return " ".join(text.split())


def rendered(twin: Path) -> BeautifulSoup:
    html = MarkdownIt("commonmark").enable("table").render(twin.read_text(encoding="utf-8"))
    return BeautifulSoup(html, "html.parser")


@pytest.fixture(scope="module")
def twins(pages: list[Path], site: Path) -> Mapping[Path, BeautifulSoup]:
    """Return the twin of each page that is made of a document."""
    return {path: rendered(path.with_name(f"{path.name}.md")) for path in pages if is_document(path, site)}


def test_a_twin_has_every_table_row_and_every_code_block(
    twins: Mapping[Path, BeautifulSoup], articles: Mapping[Path, Tag]
) -> None:
    seen = 0
    for path, twin in twins.items():
        article = articles[path]
        rows = [len(table.find_all("tr")) for table in article.find_all("table") if not table.find_parent("table")]
        assert [len(table.find_all("tr")) for table in twin.find_all("table")] == rows, path.name
        blocks = [flat(block.get_text()) for block in article.select("div.highlight pre")]
        assert [flat(block.get_text()) for block in twin.select("pre")] == blocks, path.name
        headings = [flat(h.get_text()).rstrip("¶ ") for h in article.select("section > h1, section > h2, section > h3")]
        found = [flat(h.get_text()) for h in twin.select("h1, h2, h3, h4")]
        assert [text for text in headings if not any(text[:12] in other for other in found)] == [], path.name
        assert "[source]" not in twin.get_text(), path.name
        seen += len(rows) + len(blocks)
    assert seen > 300, "nothing was compared"


def test_the_links_of_twins_lead_to_files(twins: Mapping[Path, BeautifulSoup]) -> None:
    dangling = []
    for path, twin in twins.items():
        for link in twin.select("a[href]"):
            address = str(link["href"]).partition("#")[0]
            if address and not re.match(r"[a-z]+:", address) and not (path.parent / address).is_file():
                dangling.append(f"{path.name}.md: {address}")
    assert dangling == []


def test_the_list_names_every_twin_once(pages: list[Path], site: Path) -> None:
    text = (site / "llms.txt").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[[^]]+\]\((\S+?)\)", text, re.MULTILINE)
    twins = [f"{path.relative_to(site).as_posix()}.md" for path in pages if is_document(path, site)]
    assert sorted(listed) == sorted(set(twins) - {"index.html.md"})
    assert text.startswith("# gradspec\n\n> ")
