"""No page is heavy: what a first visit loads, and what the page itself adds, compressed as servers send it."""

from __future__ import annotations

import gzip
import re
from functools import cache
from pathlib import Path

#: In bytes: a page with its figures, images and scripts, over what every page shares.
PAGE = 300_000
#: In bytes: the first page, as it lies on disk.
FIRST = 100_000
#: In bytes: what every page shares, and a browser keeps: style sheets and scripts. Which fonts of TeX a page takes,
#: only a browser knows: `nox -s browser` weighs them too.
SHARED = 100_000

_LOADED = re.compile(r'<(?:link [^>]*rel="stylesheet"[^>]*href|script[^>]* src|img[^>]* src)="([^"?#]+)')


@cache
def compressed(path: Path) -> int:
    """Return the size of a file as it is sent; what is compressed already is sent as it is."""
    data = path.read_bytes()
    return min(len(data), len(gzip.compress(data, mtime=0)))


def loaded(path: Path) -> set[Path]:
    """Return the files that a page loads with it."""
    return {(path.parent / address).resolve() for address in _LOADED.findall(path.read_text(encoding="utf-8"))}


def test_no_page_is_heavier_than_its_limit(pages: list[Path]) -> None:
    sizes = {path: compressed(path) + sum(map(compressed, loaded(path))) for path in pages}
    heavy = {path.name: f"{size / 1000:.0f} kB" for path, size in sizes.items() if size > PAGE}
    assert len(set(sizes.values())) > 100
    assert heavy == {}


def test_the_first_page_is_small_before_it_is_compressed(site: Path) -> None:
    assert (site / "index.html").stat().st_size <= FIRST


def test_what_every_page_shares_is_light(pages: list[Path]) -> None:
    shared = set.intersection(*map(loaded, pages))
    assert len(shared) >= 4
    assert sum(map(compressed, shared)) <= SHARED
