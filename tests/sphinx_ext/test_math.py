"""Mathematics is HTML when the page is written: no script, no address outside, and bad TeX is a warning."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from bs4 import BeautifulSoup

from gradspec.sphinx_ext.output._math import TexError, render
from sphinx_ext.handmade import Built, Project, copied

#: A renderer of the project itself, beside MathJax, as `sphinx.ext.imgmath` is one.
OTHER = """
from docutils import nodes
def visit(translator, node):
    translator.body.append("their own")
    raise nodes.SkipNode
def setup(app):
    app.add_html_math_renderer("theirs", inline_renderers=(visit, None), block_renderers=(visit, None))
"""

math = pytest.mark.parametrize("project", ["test-math"], indirect=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return copied("test-math", tmp_path_factory.mktemp("math")).build()


def test_a_formula_is_html_and_mathml_without_any_script(built: Built) -> None:
    assert (built.returncode, built.warnings) == (0, [])
    soup = BeautifulSoup(built.html(), "html.parser")
    inline, display = soup.select_one("span.math"), soup.select_one("div.math")
    assert inline is not None
    assert display is not None
    assert inline.select_one("math annotation").get_text() == r"\bar{x} = f\,\bar{y}"  # type: ignore[union-attr]
    assert display.select_one(".katex-display")
    assert display.select_one(".eqno").get_text().startswith("(1)")  # type: ignore[union-attr]
    assert "math" not in " ".join(script.get("src", "") for script in soup.find_all("script")).lower()


def test_style_and_fonts_stand_beside_the_page_and_nothing_is_fetched(built: Built) -> None:
    katex = built.folder / "_static" / "gradspec" / "katex"
    assert (katex / "katex.min.css").is_file()
    assert list((katex / "fonts").glob("*.woff2"))
    assert not list(built.folder.rglob("katex*.js"))
    loaded = re.findall(r'(?:src|href)="(https?://[^"]+)"', built.html())
    assert [address for address in loaded if "sphinx-doc" not in address and "alabaster" not in address] == []


@math
def test_pages_are_read_and_written_in_parallel(project: Project) -> None:
    built = project.build("-j", "2")
    assert (built.returncode, built.warnings) == (0, [])
    assert all("katex-html" in built.html(f"page{i}") for i in range(1, 9))


@math
def test_bad_tex_fails_the_build_twice(project: Project) -> None:
    page = project.source / "page3.rst"
    page.write_text("Bad\n===\n\n:math:`\\frac{1}`\n", encoding="utf-8")
    for _ in range(2):
        built = project.build()
        assert built.returncode == 1
        (line,) = built.warnings
        assert line.startswith(f"{page}:4: WARNING: KaTeX cannot read")
        assert line.endswith("[gradspec.math]")
    assert r"\frac{1}" in built.html("page3")


def test_the_page_of_a_function_is_made_in_parallel(project: Project) -> None:
    built = project.build("-j", "2")
    assert (built.returncode, built.warnings) == (0, [])
    assert "katex-html" in built.html("vjp")


@math
@pytest.mark.parametrize("theirs", ["", OTHER])
def test_a_project_that_does_not_choose_it_keeps_its_own_mathematics(project: Project, theirs: str) -> None:
    (project.source / "conf.py").write_text(f'extensions = ["gradspec.sphinx_ext"]\n{theirs}', encoding="utf-8")
    built = project.build()
    assert (built.returncode, built.warnings) == (0, [])
    assert ("their own" if theirs else r"\(\bar{x}") in built.html()
    assert not list(built.folder.rglob("katex*"))


def test_a_tex_error_is_one_line() -> None:
    with pytest.raises(TexError, match=r"^Undefined control sequence"):
        render(r"\nonsense", display=False)


def test_a_line_may_break_between_words_but_not_within_a_group_or_a_display() -> None:
    words = r"x \text{ once a pass}"
    parts = BeautifulSoup(render(words, display=False), "html.parser").select(".katex-html > .base")
    assert [part.get_text().split() for part in parts] == [["x", "once"], ["a"], ["pass"]]
    assert len(BeautifulSoup(render(words, display=True), "html.parser").select(".katex-html > .base")) == 1
    assert render(r"x_{\text{a b}} \{", display=False).count('class="base"') == 1


def test_the_engine_is_closed_before_python_ends() -> None:
    # What is registered first is called last. An engine that Python finds at its end may hang for ever.
    script = """
import atexit, os
from gradspec.sphinx_ext.output import _math
atexit.register(lambda: print(_math._engines[os.getpid()]._ctx))
_math.render("x", display=False)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "None\n"
