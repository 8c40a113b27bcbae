"""CONTRIBUTING.md is true: each recipe is followed in a copy of the tree, and its checks pass there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gradspec_lab.house.rooms import layers_in

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
#: "In `PATH`:", or with where to add; and the block that follows. "Check it:", and its commands.
STEP = re.compile(
    r"^In `(?P<path>[^`]+)`(?:, (?P<where>above|below) (?P<tick>``?)(?P<line>.+?)(?P=tick), add"
    r"|, (?P<end>at the end), add)?:\n\n"
    r"(?P<ticks>`{3,})\w*\n(?P<block>.*?\n)(?P=ticks)$",
    re.MULTILINE | re.DOTALL,
)
CHECKS = re.compile(r"^Check it:\n\n```sh\n(.*?)```$", re.MULTILINE | re.DOTALL)
RECIPES = {part.partition("\n")[0]: part for part in TEXT.split("\n## ")[1:] if STEP.search(part)}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a copy of all that a recipe may change or run."""
    for part in ("src", "docs", "conf", "tests"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("pyproject.toml", "README.md", "noxfile.py"):
        shutil.copy2(ROOT / part, tmp_path / part)
    return tmp_path


def follow(recipe: str, tree: Path) -> None:
    """Do what a recipe says, to the letter."""
    for step in STEP.finditer(recipe):
        path, block = tree / step["path"], step["block"]
        if step["end"]:
            path.write_text(f"{path.read_text(encoding='utf-8')}\n\n{block}", encoding="utf-8")
        elif step["line"] is None:
            assert not path.exists(), f"{step['path']} is there already"
            path.parent.mkdir(exist_ok=True)
            path.write_text(block, encoding="utf-8")
        else:
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            assert lines.count(f"{step['line']}\n") == 1, f"{step['path']} does not hold the line {step['line']!r} once"
            at = lines.index(f"{step['line']}\n") + (step["where"] == "below")
            path.write_text("".join([*lines[:at], block, *lines[at:]]), encoding="utf-8")


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_can_be_followed(name: str, tree: Path) -> None:
    follow(RECIPES[name], tree)
    (commands,) = CHECKS.findall(RECIPES[name])
    env = {**os.environ, "PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
    for command in commands.splitlines():
        words = [sys.executable, "-m", *shlex.split(command)]
        done = subprocess.run(words, cwd=tree, env=env, capture_output=True, text=True, timeout=500, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    changed = [step["path"] for step in STEP.finditer(RECIPES[name]) if step["path"].endswith(".py")]
    for check in (["check"], ["format", "--check"]):
        done = subprocess.run([*RUFF, *check, *changed], cwd=tree, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


RUFF = (sys.executable, "-m", "ruff")


def test_there_are_four_recipes() -> None:
    assert list(RECIPES) == ["Add a function", "Add a law", "Add a page", "Add a directive"]


@pytest.mark.parametrize(("name", "files"), list(zip(RECIPES, (5, 4, 2, 4), strict=True)))
def test_a_recipe_says_how_many_files_it_costs(name: str, files: int) -> None:
    assert len({step["path"] for step in STEP.finditer(RECIPES[name])}) == files
    assert re.findall(r"\b(\d+) files\b", RECIPES[name]) == [str(files)]


def test_the_picture_of_the_house_is_that_of_the_contract() -> None:
    (picture,) = re.findall(r"^```\n(  __main__\n.*?)```$", TEXT, re.MULTILINE | re.DOTALL)
    layers = layers_in(ROOT / "pyproject.toml")["gradspec"]
    assert picture.splitlines() == [f"  {'  '.join(layer)}" for layer in layers]


def test_the_commands_are_sessions() -> None:
    noxfile = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    named = {name for names in re.findall(r"^\| `nox -s ([\w ]+)` \|", TEXT, re.MULTILINE) for name in names.split()}
    assert named == {"tests", "lint", "types", "docs", "lab"}
    assert [name for name in named if f"def {name}(session" not in noxfile] == []
