"""Held against TextGrad itself; needs GRADSPEC_TEXTGRAD to name the folder of its source distribution.

None of it is in this repository: `nox -s lab -- textgrad` downloads it and runs this.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gradspec.text.textgrad as tg
from gradspec.text.textgrad._absent import ABSENT
from text.textgrad import programs

#: The tests that need no network; the other two download a picture.
OFFLINE = "not multimodal"


@pytest.fixture(scope="module")
def published() -> Path:
    folder = Path(os.environ.get("GRADSPEC_TEXTGRAD", ""))
    if not (folder / "tests" / "test_basics.py").is_file():
        pytest.skip("GRADSPEC_TEXTGRAD names no folder with the source distribution of textgrad 0.1.8")
    return folder


def without_key() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}


def test_its_own_offline_tests_pass_with_the_import_line_changed(published: Path, tmp_path: Path) -> None:
    text = (published / "tests" / "test_basics.py").read_text(encoding="utf-8")
    changed, lines = re.subn(r"^(\s*)from textgrad\b", r"\1from gradspec.text.textgrad", text, flags=re.MULTILINE)
    assert lines >= 10
    (tmp_path / "test_basics.py").write_text(changed, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", OFFLINE, "test_basics.py"]
    done = subprocess.run(command, cwd=tmp_path, env=without_key(), capture_output=True, text=True, check=False)
    assert re.search(r"\n10 passed, 2 deselected", done.stdout), done.stdout + done.stderr
    assert "import textgrad" not in changed


def test_programs_ask_as_often_and_end_alike(published: Path, tmp_path: Path) -> None:
    script = (
        "import json, sys; from gradspec_lab.benchmarks import _textgrad; _textgrad.load(sys.argv[1]); "
        "import programs; print(json.dumps(programs.results('textgrad')))"
    )
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    environment = {**without_key(), "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", script, str(published)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert programs.results("gradspec.text.textgrad") == json.loads(done.stdout.splitlines()[-1])


def test_every_name_that_is_said_to_be_absent_is_one_of_textgrads(published: Path) -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (published / "textgrad").rglob("*.py"))
    there = {
        *re.findall(r"^(?:class|def) (\w+)", sources, re.MULTILINE),
        *re.findall(r"^(\w+) =", sources, re.MULTILINE),
    }
    there |= {path.name for path in (published / "textgrad").iterdir()}
    assert set(ABSENT) <= there


def test_every_public_class_of_textgrads_is_here_or_said_to_be_absent(published: Path) -> None:
    def classes(folder: Path) -> set[str]:
        sources = [path.read_text(encoding="utf-8") for path in folder.rglob("*.py") if "tasks" not in path.parts]
        return set(re.findall(r"^class ([A-Z]\w+)", "\n".join(sources), re.MULTILINE))

    assert classes(published / "textgrad") - classes(Path(tg.__file__).parent) - set(ABSENT) == set()
