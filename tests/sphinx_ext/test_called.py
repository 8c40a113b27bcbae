"""The page of a spec that names nothing as documented, of a spec that two pages show, and of a mistyped option."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup

from sphinx_ext.handmade import SHEET, Built, Project, report

#: The page without the words of its author.
BARE = "# Scale\n\n```{gradspec-function} scale\n```\n\n```{toctree}\nvjp\nmatrix\n```\n"


def of(project: Project, page: str, **said: Any) -> Project:
    """Return the project with a page and a sheet of a spec that documents nothing."""
    (project.source / "index.md").write_text(page, encoding="utf-8")
    project.write(replace(report(project), sheets={"scale": {**SHEET, "documented": [], **said}}))
    return project


def listed(built: Built) -> str:
    return zlib.decompress((built.folder / "objects.inv").read_bytes().split(b"zlib.\n")[1]).decode()


def head(built: Built) -> str:
    found = BeautifulSoup(built.html(), "html.parser").select_one("dl.py")
    assert found is not None
    return " ".join(found.get_text(" ").split())


def test_a_class_whose_apply_is_called_is_shown_with_its_name_and_its_docstring(project: Project) -> None:
    built = of(project, BARE, called="demo.Scale", is_class=True).build()
    assert (built.returncode, built.warnings) == (0, [])
    assert head(built).startswith("demo. Scale.apply ( x : Tensor")
    assert "Scale a gradient." in head(built)
    assert "demo.Scale py:class" in listed(built)


def test_a_call_that_this_build_cannot_import_is_shown_by_its_name_alone(project: Project) -> None:
    built = of(project, BARE, called="elsewhere.scale", is_class=False).build()
    assert (built.returncode, built.warnings) == (0, [])
    assert head(built).startswith("elsewhere. scale ( x : Tensor")
    assert "elsewhere.scale py:function" in listed(built)


TITLED = """\
scale
=====

.. gradspec-function:: scale

:gradspec:spec:`scale`

.. toctree::

   vjp
   matrix
"""


def test_a_name_that_is_the_id_of_the_title_too_is_two_targets(project: Project) -> None:
    """What is called has no name here (a lambda, or one of torch), so that the name of the spec stands in its place."""
    (project.source / "index.md").unlink()
    (project.source / "index.rst").write_text(TITLED, encoding="utf-8")
    project.write(replace(report(project), sheets={"scale": {**SHEET, "documented": [], "called": ""}}))
    built = project.build()
    assert (built.returncode, built.warnings) == (0, [])
    assert 'href="#spec-scale"' in built.html()


TWIN = """\
Again
=====

.. gradspec-function:: scale
   :no-index:
"""


@pytest.mark.parametrize("option", ["   :no-index:\n", ""], ids=["no-index", "without"])
def test_a_second_page_of_a_spec_asks_for_no_index(project: Project, option: str) -> None:
    (project.source / "again.rst").write_text(TWIN.replace("   :no-index:\n", option), encoding="utf-8")
    built = of(project, BARE.replace("matrix", "matrix\nagain"), called="demo.Scale", is_class=True).build()
    assert "demo.Scale" in built.html("again")
    if option:
        assert (built.returncode, built.warnings) == (0, [])
        assert "demo.Scale py:class 1 index.html" in listed(built)
    else:
        assert built.returncode
        assert "use :no-index: for one of them" in "\n".join(built.warnings)


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("# Scale\n\n```{gradspec-function} scale\n:noindx:\n```\n", "Unknown option key: 'noindx'"),
        ("Scale\n=====\n\n.. gradspec-function:: scale\n   :noindx:\n", 'unknown option: "noindx"'),
    ],
    ids=["markdown", "rest"],
)
def test_an_option_that_there_is_not_is_named(project: Project, page: str, words: str) -> None:
    name = "page.md" if page.startswith("#") else "page.rst"
    Path(project.source / name).write_text(page, encoding="utf-8")
    built = project.build("--keep-going")
    assert built.returncode
    assert words in "\n".join(built.warnings)


INHERITING = '''

class Function:
    """As torch's."""

    def mark(self):
        """Mark."""


Function.__module__ = "torch.autograd.function"


class Mine(Function):
    """Mine."""
'''


@pytest.mark.parametrize("option", [":inherited-members:\n", ""], ids=["asked", "not"])
def test_what_a_class_has_from_torch_is_listed_where_it_is_asked_for(project: Project, option: str) -> None:
    with (project.source / "demo.py").open("a", encoding="utf-8") as file:
        file.write(INHERITING)
    built = of(project, BARE.replace(" scale\n", f" scale\n{option}", 1), called="demo.Mine", is_class=True).build()
    assert ("demo.Mine.mark py:method" in listed(built)) == bool(option)
    assert ("Inherited from" in built.html()) == bool(option)
