"""Whether a record is about today's source: told from files, without torch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gradspec._record import Source
from gradspec.sphinx_ext.domain._staleness import Today
from sphinx_ext.handmade import Project, source_of


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "helper.py").write_text("HALF = 2\n", encoding="utf-8")
    made = tmp_path / "scale.py"
    made.write_text("from helper import HALF\n\nFACTOR = 1 / HALF\n", encoding="utf-8")
    return made


@pytest.fixture
def sources(file: Path) -> dict[str, Source]:
    return {"spec scale": source_of(file)}


@pytest.mark.parametrize("name", ["scale.py", "helper.py"])
@pytest.mark.parametrize("number", ["3", "10"], ids=["of the same size", "longer"])
def test_an_edit_is_seen(file: Path, sources: dict[str, Source], name: str, number: str) -> None:
    assert Today().is_current(sources)
    edit, old = file.with_name(name), {"scale.py": "1", "helper.py": "2"}[name]
    before = edit.stat().st_mtime_ns
    edit.write_text(edit.read_text(encoding="utf-8").replace(old, number), encoding="utf-8")
    os.utime(edit, ns=(before + 1, before + 1))
    assert Today().changed(sources) == {"spec scale"}


def test_each_byte_of_a_file_counts(file: Path, sources: dict[str, Source]) -> None:
    text = "def scale(x):\n    {}\n    return x\n"
    file.write_text(text.format('"""Return x."""'), encoding="utf-8")
    sources = {"spec scale": source_of(file)}
    assert Today().is_current(sources)
    file.write_text(text.format('"""Return x as it is."""'), encoding="utf-8")
    assert Today().changed(sources) == {"spec scale"}
    file.write_text(text.format('"""Return x."""'), encoding="utf-8")
    assert Today().is_current(sources)


@pytest.mark.parametrize("name", ["scale.py", "helper.py"])
def test_a_file_that_is_gone_is_seen(file: Path, sources: dict[str, Source], name: str) -> None:
    assert Today().is_current(sources)
    file.with_name(name).unlink()
    assert not Today().is_current(sources)


def test_a_source_of_which_nothing_is_known_is_never_current(sources: dict[str, Source]) -> None:
    assert not Today().is_current({"spec other": Source(roots=("nowhere:SPEC",))})
    assert Today().is_current(sources)


def test_a_path_in_a_record_counts_from_its_folders(file: Path, sources: dict[str, Source]) -> None:
    known = Source(roots=("scale.py",), key=sources["spec scale"].key)
    assert Today(folders=[file.parent]).is_current({"experiment": known})
    assert Today(folders=[file.parent]).files(known) == [str(file.with_name("helper.py")), str(file)]
    assert not Today(folders=[file.parent / "deeper"]).is_current({"experiment": known})


def test_a_stale_source_is_looked_at_in_each_build(project: Project) -> None:
    assert project.build("-b", "dummy").returncode == 0
    demo = project.source / "demo.py"
    text = demo.read_text(encoding="utf-8")
    demo.write_text(text.replace("return x", "return -x"), encoding="utf-8")
    for _ in range(2):
        built = project.build("-b", "dummy")
        assert built.returncode == 1
        assert any("[gradspec.stale]" in line for line in built.warnings)
    demo.write_text(text, encoding="utf-8")
    assert project.build("-b", "dummy").returncode == 0


def test_a_page_of_all_specs_is_read_again_when_one_of_them_is_edited(project: Project) -> None:
    assert project.build().returncode == 0
    pages = ("matrix", "vjp")
    assert all("holds" in project.doctree(page).astext() for page in pages)
    demo = project.source / "demo.py"
    demo.write_text(demo.read_text(encoding="utf-8").replace("return x", "return -x"), encoding="utf-8")

    assert project.build().returncode == 1

    assert all("not measured" in project.doctree(page).astext() for page in pages)
