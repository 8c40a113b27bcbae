"""In other people's projects: their themes, numpydoc, and no warning more than without the extension."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradspec.sphinx_ext.autodoc._numpydoc import without_members
from sphinx_ext.handmade import Built, Project, copied
from sphinx_ext.test_replicas import article

pytest.importorskip("torch")

THEMES = ("alabaster", "furo", "pydata_sphinx_theme", "sphinx_rtd_theme")
#: As numpydoc 1.11 writes them: the attributes, the methods with a docstring, and those without one.
TABLES = """
Scale.

:Attributes:

    **saved_tensors**
        ..

    :obj:`own <pkg.Factor.own>`
        Mine.

.. rubric:: Methods

.. autosummary::
   :toctree:

   ~pkg.Factor.backward
   mark_dirty

=============  ==========
     **apply**  Calls it.
=============  ==========

The end.
""".splitlines()


@pytest.mark.parametrize("theme", THEMES)
def test_a_page_of_a_spec_is_built_with_each_theme(project: Project, theme: str) -> None:
    made = project.build("-D", f"html_theme={theme}")
    assert (made.returncode, made.warnings) == (0, [])
    assert "gradspec" in made.html()


@pytest.mark.parametrize("theme", [THEMES[0], *(pytest.param(one, marks=pytest.mark.slow) for one in THEMES[1:])])
def test_pages_of_autodoc_are_built_with_each_theme(theme: str, tmp_path: Path) -> None:
    made = copied("test-replicas", tmp_path).build("-D", f"html_theme={theme}")
    assert (made.returncode, made.warnings) == (0, [])


@pytest.fixture(scope="module")
def with_numpydoc(tmp_path_factory: pytest.TempPathFactory) -> Built:
    extensions = "gradspec.sphinx_ext,myst_parser,sphinx.ext.autosummary,numpydoc"
    return copied("test-replicas", tmp_path_factory.mktemp("numpydoc")).build(
        "-D", f"extensions={extensions}", "-D", "numpydoc_class_members_toctree=0"
    )


@pytest.mark.parametrize("page", ["generated/scaling.GradFactor", "espnet", "brails", "archai"])
def test_the_tables_of_numpydoc_list_what_is_the_projects(with_numpydoc: Built, page: str) -> None:
    assert (with_numpydoc.returncode, with_numpydoc.warnings) == (0, [])
    words = article(with_numpydoc, page)
    assert "Methods" in words
    assert "backward" in words
    assert not {"mark_dirty", "saved_tensors", "register_buffer", "__call__", "dirty_tensors"} & set(words.split())


def test_what_is_empty_then_goes_with_its_head() -> None:
    assert without_members(TABLES, frozenset()) == [*TABLES, ""]
    some = without_members(TABLES, frozenset({"saved_tensors", "mark_dirty", "apply"}))
    assert [line for line in some if line.strip()] == [
        "Scale.",
        ":Attributes:",
        "    :obj:`own <pkg.Factor.own>`",
        "        Mine.",
        ".. rubric:: Methods",
        ".. autosummary::",
        "   :toctree:",
        "   ~pkg.Factor.backward",
        "The end.",
    ]
    none = without_members(TABLES, frozenset({"saved_tensors", "own", "backward", "mark_dirty", "apply"}))
    assert [line for line in none if line.strip()] == ["Scale.", "The end."]


def test_the_renderer_of_mathematics_says_what_it_needs(project: Project) -> None:
    conf = project.source / "conf.py"
    hidden = "import importlib.util as u\nf = u.find_spec\nu.find_spec = lambda n: None if 'racer' in n else f(n)\n"
    conf.write_text(hidden + conf.read_text(encoding="utf-8"), encoding="utf-8")
    made = project.build(cold=True)
    assert made.returncode == 2
    assert any("needs mini-racer: pip install mini-racer, or leave it out" in line for line in made.warnings)
