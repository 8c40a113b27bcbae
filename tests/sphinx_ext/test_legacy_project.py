"""An existing project that only adds the extension gets pages without torch's own words."""

from __future__ import annotations

import pytest
from bs4 import BeautifulSoup

from boilerplate import known, passages, share
from sphinx_ext.handmade import Built, copied

pages = pytest.mark.parametrize("page", ["members", "generated/legacy.Factor"])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return copied("test-legacy", tmp_path_factory.mktemp("legacy")).build()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return copied("test-legacy", tmp_path_factory.mktemp("plain")).build("-D", "extensions=sphinx.ext.autosummary")


def article(built: Built, page: str) -> str:
    body = BeautifulSoup(built.html(page), "html.parser").select_one("div.body")
    assert body is not None
    return body.get_text(" ")


@pytest.mark.slow
@pages
def test_without_the_extension_the_page_is_mostly_torchs(plain: Built, page: str) -> None:
    assert share(article(plain, page), known()) > 0.5


@pages
def test_no_word_is_torchs(built: Built, page: str) -> None:
    assert (built.returncode, built.warnings) == (0, [])
    assert passages(article(built, page), known()) == []
    assert "mark_dirty" not in article(built, page)


def test_own_docstrings_and_signatures_stay(built: Built) -> None:
    text = " ".join(article(built, "members").split())
    assert "Scale the cotangent." in text
    assert "class legacy. Factor .apply ( x , f )" in text
    assert "static forward ( x , f )" in text, "the first argument goes by position: here ctx is called self"
    assert "Bases: torch.autograd.Function" in text
