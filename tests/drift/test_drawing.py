"""A check of one change makes the edits of the files that it touches, and a sample of the others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from drift.drawing import drawn
from drift.edits import Edit, Site
from drift.working_copy import ROOT
from forked import python

EDITS = [
    Edit(kind=f"{file} {number}", file=file, old="a", new="b", check=Site(), says="b")
    for file in ("docs/page.md", "src/code.py")
    for number in range(20)
]
OF_PAGE = {edit.kind for edit in EDITS if edit.file == "docs/page.md"}


def commit(folder: Path, text: str) -> None:
    (folder / "docs" / "page.md").write_text(text)
    for words in (["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", text]):
        subprocess.run(["git", *words], cwd=folder, check=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    commit(tmp_path, "first")
    commit(tmp_path, "second")
    return tmp_path


def test_edits_of_changed_files_are_all_made_and_some_of_the_others(repository: Path) -> None:
    kinds = drawn(EDITS, 5, "HEAD~1", repository)
    assert kinds >= OF_PAGE
    assert len(kinds - OF_PAGE) == 5


def test_a_second_run_makes_the_same_ones_and_another_commit_others(repository: Path) -> None:
    first = drawn(EDITS, 5, "HEAD~1", repository)
    assert drawn(EDITS, 5, "HEAD~1", repository) == first
    commit(repository, "third")
    assert drawn(EDITS, 5, "HEAD~1", repository) != first


def test_what_is_not_committed_counts_as_changed(repository: Path) -> None:
    assert len(drawn(EDITS, 0, "HEAD", repository)) == 0
    (repository / "docs" / "page.md").write_text("edited")
    assert drawn(EDITS, 0, "HEAD", repository) == OF_PAGE


def test_a_sample_is_never_larger_than_what_there_is(repository: Path) -> None:
    assert len(drawn(EDITS, 1000, "HEAD~1", repository)) == len(EDITS)


def test_a_commit_that_is_not_there_is_named(repository: Path) -> None:
    with pytest.raises(ValueError, match="HEAD~9"):
        drawn(EDITS, 5, "HEAD~9", repository)


def test_a_clone_without_the_commit_before_draws_its_sample(repository: Path, tmp_path: Path) -> None:
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth", "1", repository.as_uri(), str(shallow)], check=True)
    assert len(drawn(EDITS, 5, None, shallow)) == 5
    assert drawn(EDITS, 0, None, repository) == OF_PAGE


SHOWN = """
import sys, pytest

class Look:
    def pytest_collection_finish(self, session):
        for item in session.items:
            if "copy" in getattr(item, "fixturenames", ()):
                groups = [mark.args[0] for mark in item.iter_markers("xdist_group")]
                print("\\nEDIT", type(item.callspec.params["edit"].check).__name__, *groups)

sys.exit(pytest.main(["--collect-only", "-q", "tests/drift", *sys.argv[1:]], plugins=[Look()]))
"""


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (["--drawn", "60"], {"EDIT Site site", "EDIT Tests"}),
        ([], {"EDIT Site", "EDIT Tests"}),
    ],
)
@pytest.mark.slow
def test_a_sample_builds_the_site_in_one_process_and_the_whole_in_all(options: list[str], shown: set[str]) -> None:
    done = python("-c", SHOWN, *options, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {line for line in done.stdout.splitlines() if line.startswith("EDIT")} == shown
