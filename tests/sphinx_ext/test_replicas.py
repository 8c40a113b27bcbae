"""Replicas of the five published pages, and of what else autodoc can be asked: the extension alone cleans them all."""

from __future__ import annotations

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from boilerplate import known, passages, share
from sphinx_ext.handmade import Built, copied
from sphinx_ext.test_function_page import normal

pytest.importorskip("torch")

#: How much of each page is torch's own words where the extension is left out; afnio's class is none of torch's.
PAGES = {
    "generated/scaling.GradFactor": 0.5,
    "espnet": 0.5,
    "brails": 0.5,
    "archai": 0.5,
    "inherited": 0.7,
    "afnio": 0.0,
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    made = copied("test-replicas", tmp_path_factory.mktemp("replicas")).build()
    assert (made.returncode, made.warnings) == (0, [])
    return made


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The same project without the extension; its pages have warnings, for torch's words link to torch's pages."""
    folder = tmp_path_factory.mktemp("plain")
    return copied("test-replicas", folder).build("-D", "extensions=myst_parser,sphinx.ext.autosummary")


def article(built: Built, page: str) -> str:
    body = BeautifulSoup(built.html(page), "html.parser").select_one("div.body")
    assert body is not None
    return " ".join(body.get_text(" ").split())


@pytest.mark.slow
@pytest.mark.parametrize(("page", "before"), PAGES.items())
def test_what_was_torchs_is_gone(built: Built, plain: Built, page: str, before: float) -> None:
    assert share(article(plain, page), known()) >= before
    assert passages(article(built, page), known()) == []


@pytest.mark.parametrize(
    ("page", "signature"),
    [
        ("generated/scaling.GradFactor", "class scaling. GradFactor .apply ( x , f )"),
        ("espnet", "class scaling. GradMultiply .apply ( x , scale )"),
        ("brails", "class bank. LinearAverageOp .apply ( x , y , memory , params )"),
        ("brails", "static forward ( x , y , memory , params )"),
        ("brails", "class bank. LinearAverage ( inputSize , outputSize , T = 0.07 , momentum = 0.5 )"),
        ("archai", "class shake. ShakeShake .apply ( x1 , x2 , training = True )"),
    ],
)
def test_the_signature_is_that_of_the_call(built: Built, page: str, signature: str) -> None:
    assert signature in article(built, page)


@pytest.mark.parametrize("page", ["generated/scaling.GradFactor", "espnet", "brails", "archai"])
def test_a_class_without_words_gets_none(built: Built, page: str) -> None:
    assert "documented" not in article(built, page)
    assert "Call " not in article(built, page)


@pytest.mark.parametrize("page", ["generated/scaling.GradFactor", "espnet", "brails", "archai"])
def test_no_method_shows_its_ctx(built: Built, page: str) -> None:
    assert "ctx" not in article(built, page)
    assert "static backward (" in article(built, page)


def test_own_words_stay(built: Built, plain: Built) -> None:
    assert "Mixes two branches at random. Called with the images of a batch." in article(built, "archai")
    assert "Returns the mixture and the shortcut." in article(built, "archai")
    assert article(built, "afnio") == article(plain, "afnio")


def test_only_own_members_are_listed(built: Built) -> None:
    soup = BeautifulSoup(built.html("inherited"), "html.parser")
    names = [str(name.get_text()) for name in soup.select("dl.method .descname, dl.attribute .descname")]
    assert sorted(names) == ["backward", "forward", "forward"]


def test_markdown_and_rest_make_the_same_doctree(built: Built, tmp_path: Path) -> None:
    project = copied("test-replicas", tmp_path)
    assert project.build().returncode == 0
    rest, markdown = (project.doctree(page).pformat() for page in ("rest", "myst"))
    assert normal(rest) == normal(markdown)
    assert "Shortcut" in rest
