"""The fields of a class on a page: what its comments say, read from the file without running it."""

from __future__ import annotations

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from gradspec.sphinx_ext.directives._fields import first_sentence
from sphinx_ext.handmade import Project, copied

CODE = """
raise SystemExit("a page runs no code")


class Promise:
    #: The name; it is unique.
    name: str
    #: What `forward` computes. In plain torch.
    primal: int
    undocumented: int


class Empty:
    pass
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = copied("test-kills", tmp_path)
    (made.source / "promises.py").write_text(CODE, encoding="utf-8")
    return made


def page(project: Project, classes: str) -> None:
    text = f"# Fields\n\n```{{gradspec-fields}} {classes}\n```\n"
    (project.source / "index.md").write_text(text, encoding="utf-8")


def test_each_documented_field_has_a_row(project: Project) -> None:
    page(project, "promises:Promise")
    built = project.build()
    assert (built.returncode, built.warnings) == (0, [])
    rows = BeautifulSoup(built.html(), "html.parser").select("tbody tr")
    assert [[cell.get_text(" ", strip=True) for cell in row.find_all("td")] for row in rows] == [
        ["Promise"],
        ["name", "The name."],
        ["primal", "What forward computes."],
    ]


def test_a_class_is_found_where_a_package_imports_it_from(project: Project) -> None:
    home = project.source / "packed"
    home.mkdir()
    (home / "_written.py").write_text(CODE, encoding="utf-8")
    (home / "__init__.py").write_text("from ._written import Promise as Vow\n", encoding="utf-8")
    page(project, "packed:Vow")
    built = project.build()
    assert (built.returncode, built.warnings) == (0, [])
    rows = BeautifulSoup(built.html(), "html.parser").select("tbody tr")
    assert rows[-1].get_text(" ", strip=True) == "primal What forward computes."


@pytest.mark.parametrize("wrong", ["promises:Nothing", "promises:Empty", "gone:Promise", "promises"])
def test_a_class_that_is_not_found_is_a_warning_in_each_build(project: Project, wrong: str) -> None:
    page(project, f"promises:Promise {wrong}")
    for _ in range(2):
        built = project.build()
        (line,) = built.warnings
        assert f"{wrong}: " in line
        assert "[gradspec.import]" in line
    assert "What " in built.html()


def test_a_comment_that_changes_is_read_again(project: Project) -> None:
    page(project, "promises:Promise")
    project.build()
    path = project.source / "promises.py"
    path.write_text(path.read_text(encoding="utf-8").replace("The name;", "Another name;"), encoding="utf-8")
    assert "Another name." in (project.build()).html()


@pytest.mark.parametrize(
    ("text", "first"),
    [("One. Two.", "One."), ("One: two", "One."), ("One; two. Three", "One."), ("Only one", "Only one")],
)
def test_the_first_sentence_ends_at_the_first_end(text: str, first: str) -> None:
    assert first_sentence(text) == first
