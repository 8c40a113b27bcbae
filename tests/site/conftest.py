"""The built site: the folder that `GRADSPEC_SITE` names. `nox -s docs` names the one that it has built."""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, SoupStrainer, Tag


@pytest.fixture(scope="session")
def site() -> Path:
    """Return the folder of the built site; the test is skipped if none is named, and fails if the named one is none."""
    name = os.environ.get("GRADSPEC_SITE")
    if not name:
        pytest.skip("`nox -s docs` runs it on the site that it builds")
    folder = Path(name)
    if not (folder / "index.html").is_file():
        pytest.fail(f"GRADSPEC_SITE names no built site: {folder}")
    return folder


@pytest.fixture(scope="session")
def pages(site: Path) -> list[Path]:
    """Return every page of the site."""
    found = sorted(path for path in site.rglob("*.html") if "_static" not in path.relative_to(site).parts)
    assert len(found) > 100, "most pages are missing"
    return found


@pytest.fixture(scope="session")
def articles(pages: list[Path]) -> Mapping[Path, Tag]:
    """Return the article of each page: its text without the navigation. All are parsed once."""
    only, found = SoupStrainer("article"), {}
    gc.disable()  # a million objects that stay: a search for cycles would visit them again and again
    for path in pages:
        soup = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser", parse_only=only)
        found[path] = soup.article
    gc.freeze()
    gc.enable()
    assert [path.name for path, article in found.items() if article is None] == [], "a page has no article"
    return found
