"""Whether a record is about today's source: what was found in one build is not looked for again in the next."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gradspec.report import Source
from gradspec.source import fingerprint
from gradspec.sphinx_ext import _staleness
from sphinx_ext.handmade import Project


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "scale.py"
    made.write_text("FACTOR = 1\n", encoding="utf-8")
    return made


@pytest.fixture
def source(file: Path) -> Source:
    return Source(package="", files=(str(file),), hash=fingerprint([str(file)], None))


def test_a_source_that_was_current_is_not_parsed_again(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, str] = {}
    assert _staleness.is_current(source, seen)
    monkeypatch.setattr(_staleness, "fingerprint", lambda *_: pytest.fail("parsed"))
    assert _staleness.is_current(source, seen)


@pytest.mark.parametrize("text", ["FACTOR = 2\n", "FACTOR = 10\n"], ids=["of the same size", "longer"])
def test_an_edit_is_seen(file: Path, source: Source, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, str] = {}
    assert _staleness.is_current(source, seen)
    before = file.stat().st_mtime_ns
    file.write_text(text, encoding="utf-8")
    os.utime(file, ns=(before + 1, before + 1))
    asked: list[object] = []
    monkeypatch.setattr(_staleness, "fingerprint", lambda files, root: asked.append(files) or "another")
    assert not _staleness.is_current(source, seen)
    assert asked == [source.files]


def test_a_file_that_is_gone_is_seen(file: Path, source: Source) -> None:
    seen: dict[str, str] = {}
    assert _staleness.is_current(source, seen)
    file.unlink()
    assert not _staleness.is_current(source, seen)


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
