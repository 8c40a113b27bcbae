"""The page on moving from TextGrad is true: both halves run and print what it says, and its table is of their lines."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "move-from-textgrad.md").read_text(encoding="utf-8")
THEIRS, CLIENT, OURS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
[PRINTED] = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)


def rows(heading: str) -> list[tuple[str, str]]:
    """Return the rows of the table below a heading of the page."""
    table = PAGE.partition(heading)[2].partition("```")[0]
    return re.findall(r"^\| `(.*?)` \| `(.*?)` \|$", table, re.MULTILINE)


def run(text: str) -> None:
    exec(compile(text, "move-from-textgrad.md", "exec"), {"__name__": "how_to"})


def test_the_program_prints_what_the_page_says_once_its_import_is_changed(capsys: pytest.CaptureFixture[str]) -> None:
    [(was, write), *others] = rows("## 2.")
    assert was in THEIRS
    assert others
    for line in [write, *(line for _, line in others)]:
        exec(line, {})
    run(THEIRS.replace(was, write))
    assert capsys.readouterr().out == PRINTED


def test_the_program_in_our_names_ends_alike(capsys: pytest.CaptureFixture[str]) -> None:
    run(OURS)
    assert capsys.readouterr().out == PRINTED


def test_the_client_of_the_page_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(CLIENT)


def test_each_row_stands_in_the_programs() -> None:
    pairs = rows("## 3.")
    assert len(pairs) == 9
    for theirs, ours in pairs:
        if "grad" not in theirs:  # what a program reads to look into itself
            assert theirs in THEIRS
            assert ours in OURS


def test_the_program_prints_this_on_textgrad_too(tmp_path: Path) -> None:
    published = Path(os.environ.get("GRADSPEC_TEXTGRAD", ""))
    if not (published / "textgrad").is_dir():
        pytest.skip("GRADSPEC_TEXTGRAD names no folder with the source distribution of textgrad 0.1.8")
    (tmp_path / "program.py").write_text(
        f"from gradspec_lab.benchmarks import _textgrad\n_textgrad.load({str(published)!r})\n{THEIRS}"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-W", "ignore", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == PRINTED, done.stderr
