"""The built site: each published name has an entry and an anchor, and no page of a class is torch's own words.

Looks at the folder in `GRADSPEC_SITE`, by default `build/html`. Without a site it is skipped, unless
`GRADSPEC_SITE_REQUIRED` is set: `nox -s docs` sets both.
"""

from __future__ import annotations

import os
import re
import zlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bs4 import BeautifulSoup, Tag

from boilerplate import known, passages, share
from published_api import EXISTING, PublishedClass

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]
SITE = Path(os.environ.get("GRADSPEC_SITE") or ROOT / "build" / "html")
REQUIRED = bool(os.environ.get("GRADSPEC_SITE_REQUIRED"))
#: No page may quote more than this of torch's docstrings; the pages of our classes quote nothing.
LIMIT = 0.05

existing = pytest.mark.parametrize("entry", EXISTING, ids=lambda entry: entry.ours)


@pytest.fixture(scope="module")
def inventory() -> Mapping[str, str]:
    """Return the address of each Python object that the site exports, from its objects.inv."""
    path = SITE / "objects.inv"
    if not path.is_file():
        message = f"no site in {SITE}: build it with `nox -s docs`, or name its folder in GRADSPEC_SITE"
        if REQUIRED:
            pytest.fail(message)
        pytest.skip(message)
    return python_objects(path.read_bytes())


def python_objects(data: bytes) -> dict[str, str]:
    """Return name and address of the `py` entries of a version 2 inventory."""
    header, packed = data.split(b"zlib.\n", 1)
    assert header.startswith(b"# Sphinx inventory version 2\n")
    found = {}
    for line in zlib.decompress(packed).decode().splitlines():
        if entry := re.match(r"(?P<name>\S+) py:\S+ -?\d+ (?P<address>\S+) ", line):
            found[entry["name"]] = re.sub(r"\$$", entry["name"], entry["address"])
    return found


@cache
def page(name: str) -> BeautifulSoup:
    return BeautifulSoup((SITE / name).read_text(encoding="utf-8"), "html.parser")


def article(soup: BeautifulSoup) -> str:
    """Return the text of a page without its navigation."""
    found = soup.find("article") or soup.find(attrs={"role": "main"})
    assert isinstance(found, Tag), "the page has no article"
    return found.get_text(" ")


@existing
def test_every_published_name_is_in_the_inventory(entry: PublishedClass, inventory: Mapping[str, str]) -> None:
    names = [entry.ours, *(f"{entry.ours}.{member}" for member in entry.members)]
    assert [name for name in names if name not in inventory] == []


@existing
def test_every_published_name_has_its_anchor(entry: PublishedClass, inventory: Mapping[str, str]) -> None:
    dangling = []
    for name in (entry.ours, *(f"{entry.ours}.{member}" for member in entry.members)):
        file, _, anchor = inventory.get(name, "").partition("#")
        if not (SITE / file).is_file() or page(file).find(id=anchor or True) is None:
            dangling.append(f"{name}: {file}#{anchor}")
    assert dangling == []


@existing
def test_no_word_of_a_class_page_is_torchs(entry: PublishedClass, inventory: Mapping[str, str]) -> None:
    text = article(page(inventory[entry.ours].partition("#")[0]))
    assert len(text.split()) > 100, "the page is empty: nothing was counted"
    assert passages(text, known()) == []


def test_no_page_is_torchs(inventory: Mapping[str, str]) -> None:
    grams = known()
    shares = {
        path.relative_to(SITE).as_posix(): share(article(page(path.relative_to(SITE).as_posix())), grams)
        for path in sorted(SITE.rglob("*.html"))
        if not path.relative_to(SITE).parts[0].startswith("_")
    }
    assert {name: f"{part:.0%}" for name, part in shares.items() if part > LIMIT} == {}


def test_inventory_is_read() -> None:
    lines = "m.f py:function 1 page.html#$ -\nm.C.g py:method 1 page.html#other -\na b std:label -1 x.html#a A title\n"
    header = b"# Sphinx inventory version 2\n# Project: p\n# Version: \n# The rest is packed with zlib.\n"
    assert python_objects(header + zlib.compress(lines.encode())) == {
        "m.f": "page.html#m.f",
        "m.C.g": "page.html#other",
    }
