"""The comparison of two builds notices every kind of difference."""

from __future__ import annotations

from pathlib import Path

from browser.build_twice import differences


def test_equal_folders_do_not_differ(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name / "a").mkdir(parents=True)
        (tmp_path / name / "a" / "page.html").write_text("the same")
        (tmp_path / name / ".buildinfo").write_text(name)
    assert differences(tmp_path / "first", tmp_path / "second") == []


def test_another_byte_and_a_missing_file_are_named(tmp_path: Path) -> None:
    for name, texts in {
        "first": {"a": "1 x 2", "b": "", "c": "c"},
        "second": {"a": "1 y 2", "c": "c", "d": ""},
    }.items():
        (tmp_path / name).mkdir()
        for file, text in texts.items():
            (tmp_path / name / file).write_text(text)
    assert differences(tmp_path / "first", tmp_path / "second") == [
        "only in one of the builds: b",
        "only in one of the builds: d",
        "a: at byte 2: b'1 x 2' and b'1 y 2'",
    ]
