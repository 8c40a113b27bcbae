"""An existing project that only adds the extension gets pages without torch's own words."""

from __future__ import annotations

import pytest
from boilerplate import known, passages, share
from bs4 import BeautifulSoup

from sphinx_ext.handmade import Project

pytestmark = pytest.mark.parametrize("project", ["test-legacy"], indirect=True)


def article(project: Project, page: str) -> BeautifulSoup:
    built = project.build()
    assert (built.returncode, built.warnings) == (0, [])
    return BeautifulSoup(built.html(page), "html.parser")


@pytest.mark.parametrize("page", ["members", "generated/legacy.Factor"])
def test_no_word_is_torchs(project: Project, page: str) -> None:
    text = article(project, page).get_text(" ")
    for phrase in ("This function is to be overridden", "Define the forward", "Create a custom", "mark_dirty"):
        assert phrase not in text


def test_own_docstrings_and_signatures_stay(project: Project) -> None:
    text = " ".join(article(project, "members").get_text(" ").split())
    assert "Scale the cotangent." in text
    assert "class legacy. Factor ( x , f )" in text
    assert "static forward ( x , f )" in text, "the first argument goes by position: here ctx is called self"
    assert "Bases: torch.autograd.Function" in text.replace("Bases: Function", "Bases: torch.autograd.Function")
    assert "torch.autograd.function.Function" not in text
