"""The built site: each published name has an entry and an anchor, and no page of a class is torch's own words."""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bs4 import Tag

from boilerplate import known, passages, share
from published_api import EXISTING, PublishedClass

if TYPE_CHECKING:
    from collections.abc import Mapping

#: No page may quote more than this of torch's docstrings; the pages of our classes quote nothing.
LIMIT = 0.05

existing = pytest.mark.parametrize("entry", EXISTING, ids=lambda entry: entry.ours)


@pytest.fixture(scope="module")
def inventory(site: Path) -> Mapping[str, str]:
    """Return the address of each Python object that the site exports, from its objects.inv."""
    return python_objects((site / "objects.inv").read_bytes())


def python_objects(data: bytes) -> dict[str, str]:
    """Return name and address of the `py` entries of a version 2 inventory."""
    header, packed = data.split(b"zlib.\n", 1)
    assert header.startswith(b"# Sphinx inventory version 2\n")
    found = {}
    for line in zlib.decompress(packed).decode().splitlines():
        if entry := re.match(r"(?P<name>\S+) py:\S+ -?\d+ (?P<address>\S+) ", line):
            found[entry["name"]] = re.sub(r"\$$", entry["name"], entry["address"])
    return found


@existing
def test_every_published_name_is_in_the_inventory(entry: PublishedClass, inventory: Mapping[str, str]) -> None:
    names = [entry.ours, *(f"{entry.ours}.{member}" for member in entry.members)]
    assert [name for name in names if name not in inventory] == []


@existing
def test_every_published_name_has_its_anchor(
    entry: PublishedClass, inventory: Mapping[str, str], articles: Mapping[Path, Tag], site: Path
) -> None:
    dangling = []
    for name in (entry.ours, *(f"{entry.ours}.{member}" for member in entry.members)):
        file, _, anchor = inventory.get(name, "").partition("#")
        page = articles.get(site / file)
        if page is None or page.find(id=anchor or True) is None:
            dangling.append(f"{name}: {file}#{anchor}")
    assert dangling == []


@existing
def test_no_word_of_a_class_page_is_torchs(
    entry: PublishedClass, inventory: Mapping[str, str], articles: Mapping[Path, Tag], site: Path
) -> None:
    text = articles[site / inventory[entry.ours].partition("#")[0]].get_text(" ")
    assert len(text.split()) > 100, "the page is empty: nothing was counted"
    assert passages(text, known()) == []


def test_no_page_is_torchs(articles: Mapping[Path, Tag], site: Path) -> None:
    grams = known()
    shares = {
        path.relative_to(site).as_posix(): share(article.get_text(" "), grams)
        for path, article in articles.items()
        if path.relative_to(site).parts[0] != "_modules"  # source code quotes what it overrides
    }
    assert len(shares) > 100
    assert {name: f"{part:.0%}" for name, part in shares.items() if part > LIMIT} == {}


def test_inventory_is_read() -> None:
    lines = "m.f py:function 1 page.html#$ -\nm.C.g py:method 1 page.html#other -\na b std:label -1 x.html#a A title\n"
    header = b"# Sphinx inventory version 2\n# Project: p\n# Version: \n# The rest is packed with zlib.\n"
    assert python_objects(header + zlib.compress(lines.encode())) == {
        "m.f": "page.html#m.f",
        "m.C.g": "page.html#other",
    }
