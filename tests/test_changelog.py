"""The changelog is of the version that is built, and two branches that add to it merge."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import gradspec

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "changelog.md").read_text(encoding="utf-8")
FIRST = re.search(r"^- .*$", TEXT, re.MULTILINE).group()


def test_that_it_begins_with_this_version():
    assert re.findall(r"^## (.+)$", TEXT, re.MULTILINE)[0] == gradspec.__version__


def test_that_entries_of_two_branches_are_both_kept(tmp_path):
    log = tmp_path / "docs" / "changelog.md"
    log.parent.mkdir()

    def git(*words):
        names = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
        subprocess.run(["git", *names, *words], cwd=tmp_path, check=True, capture_output=True)

    def commit(entry):
        log.write_text(TEXT.replace(FIRST, f"{entry}\n{FIRST}", 1) if entry else TEXT, encoding="utf-8")
        git("add", "-A")
        git("commit", "-m", "a change")

    shutil.copy(ROOT / ".gitattributes", tmp_path)
    git("init", "-b", "main")
    commit("")
    git("checkout", "-b", "other")
    commit("- One thing,\n  and more of it.")
    git("checkout", "main")
    commit("- Another thing.")
    git("merge", "other", "-m", "both")

    merged = log.read_text(encoding="utf-8")
    assert "- Another thing.\n" in merged
    assert "- One thing,\n  and more of it.\n" in merged
    assert merged.count(FIRST) == 1
