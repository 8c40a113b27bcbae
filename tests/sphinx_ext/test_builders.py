"""Builders beside that of HTML pages: an EPUB is well-formed, a manual page and plain text have lists for tables."""

from __future__ import annotations

import xml.dom.minidom
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from sphinx_ext.handmade import Project, copied, report


def quiet(project: Project, builder: str, *options: str) -> Path:
    """Build with a builder, as often as a test asks, without a warning; return the folder."""
    made = project.build("-b", builder, "-D", "project=demo", "-D", "version=1", "-D", "copyright=me", *options)
    assert (made.returncode, made.warnings) == (0, [])
    return made.folder


@pytest.mark.parametrize("renderer", ["gradspec_katex", "mathjax"])
def test_an_epub_is_well_formed_and_holds_only_files_of_known_types(project: Project, renderer: str) -> None:
    conf = project.source / "conf.py"
    text = conf.read_text(encoding="utf-8").replace('"gradspec_katex"', repr(renderer))
    conf.write_text(f'{text}gradspec_llms = True\nextensions.append("sphinx.ext.mathjax")\n', encoding="utf-8")

    book = zipfile.ZipFile(quiet(project, "epub") / "demo.epub")

    pages = [name for name in book.namelist() if name.endswith(".xhtml")]
    assert {"index.xhtml", "vjp.xhtml", "genindex.xhtml"} <= set(pages)
    for page in pages:
        words = book.read(page).decode()
        xml.dom.minidom.parseString(words)
        assert 'name="description"' not in words
        assert "text/markdown" not in words
    assert ("<math" in book.read("index.xhtml").decode()) == (renderer == "gradspec_katex")
    assert [name for name in book.namelist() if name.endswith((".md", ".woff2", ".js", "LICENSE"))] == []


def test_the_pages_of_a_site_close_what_they_open(project: Project) -> None:
    with (project.source / "conf.py").open("a", encoding="utf-8") as conf:
        conf.write("gradspec_llms = True\n")
    head = project.build().html().partition("</head>")[0]
    assert '" />\n<link rel="alternate" type="text/markdown" title="Markdown" href="index.html.md" />' in head


def test_a_manual_page_has_no_merged_cells(project: Project) -> None:
    folder = quiet(project, "man")
    words = (folder / "demo.1").read_text(encoding="utf-8")
    assert "factor is text" in words.lower()
    assert "TypeError" in words


def test_a_table_is_a_list_in_plain_text(project: Project) -> None:
    folder = quiet(project, "text")
    words = (folder / "index.txt").read_text(encoding="utf-8")
    assert max(len(line) for line in words.splitlines()) > 40
    arguments = words[words.index("Arguments\n") : words.index("Errors\n")]
    for line in ('* "x"', "* Type: Tensor", "* Shape: any", "* Gradient flows: yes", "* What it is: What passes."):
        assert line in [one.strip() for one in arguments.splitlines()]
    laws = words[words.index("Laws\n") : words.index("Differences")]
    assert "**Derivative**" in laws
    assert "* cpu, torch 2.13.0: ✓ holds in 1 of 2 cases" in [one.strip() for one in laws.splitlines()]
    matrix = (folder / "matrix.txt").read_text(encoding="utf-8")
    assert '* "Scale": ✓ holds' in matrix


def test_a_table_without_rows_is_nothing_in_plain_text(project: Project) -> None:
    demo = report(project)
    project.write(replace(demo, laws={}, verdicts=()))
    made = project.build("-b", "text")
    assert "The verdict of each law" not in (made.folder / "index.txt").read_text(encoding="utf-8")
    assert "Traceback" not in "".join(made.warnings)


def test_html_keeps_its_tables_after_a_build_of_text(project: Project) -> None:
    quiet(project, "text")
    assert '<td class="gradspec-group" colspan="2">' in project.build().html()


@pytest.mark.slow
def test_a_table_has_its_merged_cells_in_latex(tmp_path: Path) -> None:
    folder = quiet(copied("test-function", tmp_path), "latex")
    assert r"\multicolumn" in (folder / "demo.tex").read_text(encoding="utf-8").replace(
        r"\sphinxstartmulticolumn", r"\multicolumn"
    )
