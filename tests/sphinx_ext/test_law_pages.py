"""`gradspec_law_pages`: the build writes the page of each law, once, and takes it away with its law."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sphinx import addnodes

from gradspec.sphinx_ext.output._law_pages import MARK
from sphinx_ext.handmade import LAW, Built, Project, report

LAWS = ["formula", "examples", "vjp", "wrong_call"]
INDEX = {
    "md": "# Laws\n\n```{gradspec-laws}\n:toctree:\n```\n\n```{toctree}\nscale\n```\n",
    "rst": "Laws\n====\n\n.. gradspec-laws::\n   :toctree:\n\n.. toctree::\n\n   scale\n",
}
SCALE = "Scale\n=====\n\n.. gradspec-function:: scale\n"


@pytest.fixture(params=INDEX)
def with_pages(request: pytest.FixtureRequest, project: Project) -> Project:
    """A project in one language that leaves the pages of laws to the build."""
    for page in (*project.source.glob("*.md"), *project.source.glob("*.rst")):
        page.unlink()
    (project.source / f"index.{request.param}").write_text(INDEX[request.param], encoding="utf-8")
    (project.source / "scale.rst").write_text(SCALE, encoding="utf-8")
    with (project.source / "conf.py").open("a", encoding="utf-8") as conf:
        conf.write('gradspec_law_pages = "laws"\n')
    return project


def built(project: Project) -> Built:
    made = project.build()
    assert (made.returncode, made.warnings) == (0, [])
    return made


def read(project: Project) -> dict[Path, int]:
    """Return when each page was last read."""
    doctrees = project.source.parent / "html.doctrees"
    return {page: page.stat().st_mtime_ns for page in doctrees.rglob("*.doctree")}


def pages(project: Project) -> set[str]:
    return {page.name for page in (project.source / "laws").iterdir()}


def test_each_law_has_a_page_and_the_second_build_reads_none(with_pages: Project) -> None:
    made = built(with_pages)
    assert [name for name in LAWS if "Backward applies the" not in made.html(f"laws/{name}")] == []
    before = read(with_pages)
    assert len(before) == 2 + len(LAWS)
    built(with_pages)
    assert read(with_pages) == before


def test_the_pages_are_in_the_navigation_in_the_order_of_the_laws(with_pages: Project) -> None:
    built(with_pages)
    (toctree,) = [tree for tree in with_pages.doctree("index").findall(addnodes.toctree) if tree["hidden"]]
    laws = list(report(with_pages).laws)
    assert sorted(laws) == sorted(LAWS)
    assert [page for _, page in toctree["entries"]] == [f"laws/{name}" for name in laws]


def test_a_page_comes_and_goes_with_its_law(with_pages: Project) -> None:
    built(with_pages)
    made = report(with_pages)
    laws = {name: law for name, law in made.laws.items() if name != "formula"} | {"new": LAW | {"family": "values"}}
    verdicts = tuple(verdict for verdict in made.verdicts if verdict.law != "formula")
    with_pages.write(replace(made, laws=laws, verdicts=verdicts))
    html = built(with_pages)
    assert "Backward applies the" in html.html("laws/new")
    assert {name.partition(".")[0] for name in pages(with_pages)} == {*LAWS, "new"} - {"formula"}


def test_a_page_of_the_author_stays_as_it_is(with_pages: Project) -> None:
    own = with_pages.source / "laws" / "vjp.rst"
    own.parent.mkdir()
    own.write_text("Backward\n========\n\n.. gradspec-law:: vjp\n", encoding="utf-8")
    assert "<h1>Backward" in built(with_pages).html("laws/vjp")
    assert "Backward\n" in own.read_text(encoding="utf-8")
    assert [name for name in pages(with_pages) if name.startswith("vjp")] == ["vjp.rst"]


def test_a_page_that_was_edited_is_written_again(with_pages: Project) -> None:
    built(with_pages)
    (page,) = (with_pages.source / "laws").glob("vjp.*")
    text = page.read_text(encoding="utf-8")
    page.write_text(f"{MARK}\n", encoding="utf-8")
    built(with_pages)
    assert page.read_text(encoding="utf-8") == text


def test_without_a_record_the_pages_stay(with_pages: Project) -> None:
    built(with_pages)
    before = pages(with_pages)
    with_pages.record.unlink()
    assert [line for line in with_pages.build().warnings if "toctree" in line] == []
    assert pages(with_pages) == before


def test_a_navigation_without_the_option_is_refused(project: Project) -> None:
    (project.source / "index.md").write_text(INDEX["md"], encoding="utf-8")
    assert "the option `toctree` needs gradspec_law_pages" in " ".join(project.build().warnings)


def test_the_option_kind_keeps_only_the_laws_that_judge_it(project: Project) -> None:
    made = report(project)
    kinds = {"vjp": ["function", "text"], "formula": ["function"]}
    laws = {name: LAW | {"family": "values", "kinds": kinds[name]} for name in kinds}
    verdicts = tuple(v for v in made.verdicts if v.law in kinds)
    project.write(replace(made, laws=laws, verdicts=verdicts))
    page = "---\norphan: true\n---\n\n# Laws\n\n```{gradspec-laws}\n:kind: text\n```\n"
    (project.source / "text_laws.md").write_text(page, encoding="utf-8")
    shown = project.build().html("text_laws")
    assert "vjp" in shown.partition("gradspec-law-list")[2]
    assert "formula" not in shown.partition("gradspec-law-list")[2].partition("</table>")[0]


def test_a_kind_that_no_law_judges_is_refused(project: Project) -> None:
    page = "---\norphan: true\n---\n\n# Laws\n\n```{gradspec-laws}\n:kind: functoin\n```\n"
    (project.source / "laws.md").write_text(page, encoding="utf-8")
    assert "no law judges specs of the kind 'functoin': the kinds are" in " ".join(project.build().warnings)


def test_pages_outside_of_the_source_are_refused(project: Project) -> None:
    built = project.build("-D", "gradspec_law_pages=../outside")
    assert built.returncode != 0
    assert not (project.source.parent / "outside").exists()
