"""Versions of the site beside each other: each knows all of them, the newest is what a reader is led to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradspec_lab.site.publish import LIST, newest_first, publish

STATIC = Path(__file__).parents[2] / "conf" / "static"


def built(folder: Path, version: str, text: str = "page") -> Path:
    """Return a site as Sphinx leaves it, of one page."""
    (folder / "_static").mkdir(parents=True, exist_ok=True)
    (folder / LIST).write_text((STATIC / "versions.js").read_text(encoding="utf-8"), encoding="utf-8")
    (folder / ".doctrees").mkdir(exist_ok=True)
    head = f"# Sphinx inventory version 2\n# Project: gradspec\n# Version: {version}\n# compressed\n"
    (folder / "objects.inv").write_bytes(head.encode() + b"x\x9c\x00")
    (folder / "index.html").write_text(text, encoding="utf-8")
    return folder


def listed(folder: Path) -> list[str]:
    text = (folder / LIST).read_text(encoding="utf-8")
    return list(json.loads(text.removeprefix("globalThis.siteVersions = ").rstrip(";\n")))


def test_each_version_has_a_folder_and_the_names_of_all(tmp_path: Path) -> None:
    into = tmp_path / "site"
    for version in ("0.9.0", "0.10.0", "0.2.0"):
        publish(built(tmp_path / version, version), into)

    for version in ("0.2.0", "0.9.0", "0.10.0"):
        assert listed(into / version) == ["0.10.0", "0.9.0", "0.2.0"]
        assert not (into / version / ".doctrees").exists()
    assert "url=0.10.0/index.html" in (into / "index.html").read_text(encoding="utf-8")


def test_a_version_that_is_published_again_is_replaced(tmp_path: Path) -> None:
    into = tmp_path / "site"
    first = built(tmp_path / "first", "0.1.0", "old")
    (first / "gone.html").write_text("gone", encoding="utf-8")
    publish(first, into)

    assert publish(built(tmp_path / "second", "0.1.0", "new"), into) == ["0.1.0"]
    assert (into / "0.1.0" / "index.html").read_text(encoding="utf-8") == "new"
    assert not (into / "0.1.0" / "gone.html").exists()


@pytest.mark.parametrize("older", ["0.9.0", "1.0.0rc1", "1.0.0.dev0", "main"])
def test_a_release_is_newer_than_what_comes_before_it(older: str) -> None:
    assert newest_first([older, "1.0.0"]) == newest_first(["1.0.0", older]) == ["1.0.0", older]
