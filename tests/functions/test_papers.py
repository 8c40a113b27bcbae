"""Where code and pages name a paper, they name the one that the table of papers has under that number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradspec.functions import FUNCTIONS
from gradspec.functions._papers import PAPERS, Paper
from gradspec.nn import MODULES
from gradspec.operators import OPERATORS
from gradspec.spec import Reference, Spec

ROOT = Path(__file__).parents[2]
TABLE = {paper.number: paper for paper in PAPERS}
LINK = re.compile(r"arxiv\.org/abs/(\d{4}\.\d{4,5})|arXiv:(\d{4}\.\d{4,5})")


def mentions() -> Iterator[tuple[str, str, str]]:
    """Yield place, number and paragraph of each link to arXiv, or number of it, in code and pages."""
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    for path in sorted(files):
        for paragraph in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
            for link in LINK.finditer(paragraph):
                yield path.relative_to(ROOT).as_posix(), link[1] or link[2], paragraph


def wrong(number: str, paragraph: str) -> str:
    """Return what a paragraph that links to a paper says otherwise than the table; empty if nothing."""
    paper = TABLE.get(number)
    if paper is None:
        return f"{number} is not in the table of src/gradspec/functions/_papers.py"
    said = " ".join(paragraph.split())
    if f"({paper.authors[0]}, {paper.year})" in said or f"({paper.authors[0]} et al., {paper.year})" in said:
        return ""
    for word in (named(paper), paper.authors[0], str(paper.year)):
        if word.lower() not in said.lower():
            return f"{number} is {paper.title!r}, {paper.authors[0]}, {paper.year}: {word!r} is not there"
    return ""


def named(paper: Paper) -> str:
    """Return the title up to a colon, as it may be cited."""
    return paper.title.partition(":")[0]


def on_arxiv(reference: Reference) -> bool:
    """Return whether a reference is to arXiv, or to a paper of the table: another, as a book, is not held to it."""
    said = f"{reference.text} {reference.url}".lower()
    return "arxiv" in said or any(named(paper).lower() in said for paper in PAPERS)


def test_every_mention_of_a_paper_is_that_of_the_table() -> None:
    found = list(mentions())
    assert len(found) > 10
    assert [f"{place}: {fault}" for place, number, text in found if (fault := wrong(number, text))] == []


def test_every_paper_of_the_table_is_used_and_has_a_number_of_its_own() -> None:
    cited = {reference.url.rpartition("/")[2] for spec in FUNCTIONS for reference in filter(on_arxiv, spec.references)}
    assert {number for _, number, _ in mentions()} | cited == set(TABLE)
    assert len(TABLE) == len(PAPERS)


@pytest.mark.parametrize("spec", [*FUNCTIONS, *OPERATORS, *MODULES], ids=lambda spec: spec.name)
def test_the_references_of_a_spec_are_papers_of_the_table(spec: Spec) -> None:
    known = {(paper.url, paper.reference().text) for paper in PAPERS}
    for reference in filter(on_arxiv, spec.references):
        assert any(reference.url == url and reference.text.startswith(text) for url, text in known), reference


def test_another_number_title_author_or_year_is_found() -> None:
    text = "`Shake-Shake regularization <https://arxiv.org/abs/1705.07485>`_, Gastaldi, 2017."
    assert wrong("1705.07485", text) == ""
    assert wrong("1705.07485", "[(Gastaldi, 2017)](https://arxiv.org/abs/1705.07485)") == ""
    assert "is not in the table" in wrong("1705.07486", text)
    for word in ("Shake-Shake regularization", "Gastaldi", "2017"):
        assert f"{word!r} is not there" in wrong("1705.07485", text.replace(word, "X"))


def test_a_book_is_on_no_list_and_a_paper_without_its_address_is() -> None:
    assert not on_arxiv(Reference(text="Euclid, Elements, book XI."))
    assert on_arxiv(Reference(text="Gastaldi: Shake-Shake regularization, 2017"))
    assert on_arxiv(Reference(text="Euclid", url="https://arxiv.org/abs/0000.00000"))
