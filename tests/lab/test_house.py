"""`python -m gradspec_lab house` counts a tree, and finds circles of files."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from gradspec_lab.__main__ import main
from gradspec_lab.house.counts import groups

ROOT = Path(__file__).parents[2]


def test_files_that_reach_one_another_are_a_circle_and_no_others() -> None:
    reached = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"f"}, "f": {"e"}, "g": {"a"}}
    assert groups(reached) == [["a", "b", "c"], ["e", "f"]]
    assert groups({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


@pytest.mark.slow
def test_the_command_counts_this_tree_and_says_why_it_cannot_count_another(tmp_path: Path) -> None:
    found = CliRunner().invoke(main, ["house", "--root", str(ROOT)])
    assert found.exit_code == 0, found.output
    counts = {line[:50].strip(): line[50:].strip() for line in found.output.splitlines() if line[:50].strip()}
    files = sum(1 for _ in (ROOT / "src" / "gradspec").rglob("*.py"))
    assert counts["files of the package"] == str(files)
    assert int(counts["sessions"]) > 5
    assert int(counts["files of one check through `verify`"]) > 10
    wrong = CliRunner().invoke(main, ["house", "--root", str(tmp_path)])
    assert wrong.exit_code == 1
    assert "cannot be counted" in wrong.output
