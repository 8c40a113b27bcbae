"""Every link within the built site leads somewhere: the file exists, and so does the anchor in it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest


@dataclass
class Page:
    """The anchors of a page, what it links to, and what it loads."""

    anchors: set[str] = field(default_factory=set)
    links: set[str] = field(default_factory=set)
    loads: set[str] = field(default_factory=set)


class Reader(HTMLParser):
    """Collects what a `Page` holds."""

    def __init__(self) -> None:
        super().__init__()
        self.page = Page()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" or (tag == "a" and name == "name"):
                self.page.anchors.add(value or "")
            elif name in ("href", "src") and value is not None:
                (self.page.links if tag == "a" else self.page.loads).add(value)


def read(text: str) -> Page:
    reader = Reader()
    reader.feed(text)
    return reader.page


def broken(pages: dict[Path, Page]) -> list[str]:
    """Return the links of pages, by path, that lead to no file, or to no anchor of a page."""
    found = []

    @cache  # the pages of a folder have the same links around them
    def file(folder: Path, address: str) -> Path | None:
        target = (folder / unquote(address)).resolve()
        return target if target.is_file() else None

    for path, page in pages.items():
        for link in sorted(page.links | page.loads):
            address = urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = file(path.parent, address.path) if address.path else path
            if target is None:
                found.append(f"{path.name}: {link}: no such file")
            elif address.fragment and target.suffix == ".html":
                anchor = unquote(address.fragment)
                if target not in pages or anchor not in pages[target].anchors:
                    found.append(f"{path.name}: {link}: no such anchor")
    return found


@pytest.fixture(scope="module")
def read_pages(pages: list[Path]) -> dict[Path, Page]:
    return {path.resolve(): read(path.read_text(encoding="utf-8")) for path in pages}


def test_every_internal_link_leads_somewhere(read_pages: dict[Path, Page]) -> None:
    assert sum(len(page.links) for page in read_pages.values()) > 1000, "the links were not read"
    assert broken(read_pages) == []


def test_no_page_loads_anything_from_elsewhere(read_pages: dict[Path, Page]) -> None:
    loads = {(path.name, load) for path, page in read_pages.items() for load in page.loads}
    assert [pair for pair in sorted(loads) if urlsplit(pair[1]).netloc] == []


def test_every_page_has_a_description(pages: list[Path]) -> None:
    without = [path.name for path in pages if '<meta name="description" content="' not in path.read_text("utf-8")]
    assert without == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    here, there = tmp_path / "here.html", tmp_path / "there.html"
    texts = {
        here: '<a href="there.html#a">1</a><a href="there.html#b">2</a><a href="gone.html">3</a><a href="#x">4</a>'
        '<img src="gone.png"><a href="https://example.org/#z">5</a><p id="y">',
        there: '<p id="a">',
    }
    for path, text in texts.items():
        path.write_text(text)
    assert broken({path: read(text) for path, text in texts.items()}) == [
        "here.html: #x: no such anchor",
        "here.html: gone.html: no such file",
        "here.html: gone.png: no such file",
        "here.html: there.html#b: no such anchor",
    ]


def test_no_id_has_a_space(pages: list[Path]) -> None:
    ids = [(path.name, found) for path in pages for found in re.findall(r'\sid="([^"]*)"', path.read_text())]
    assert ids
    assert [(page, found) for page, found in ids if re.search(r"[ \t\n]", found)] == []
