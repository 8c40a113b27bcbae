"""src/gradspec_lab/house/rooms.py finds an arrow that runs back up, and a circle."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from gradspec_lab.house.rooms import circles_of

ROOT = Path(__file__).parents[2]
PYPROJECT = """\
[[tool.importlinter.contracts]]
type = "layers"
containers = ["gradspec"]
layers = ["top", "left | right", "ground"]
"""
WITHIN = """
[[tool.importlinter.contracts]]
type = "layers"
containers = ["gradspec.house"]
layers = ["upper", "lower"]
"""
FILES = {
    "__init__": "",
    "top": "from gradspec import left\n",
    "left": "from gradspec import ground, right\n",
    "right": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from gradspec import top\n",
    "ground": "",
}


def printed(folder: Path, *, pyproject: str = PYPROJECT, **files: str) -> tuple[int, str]:
    home = folder / "src" / "gradspec"
    home.mkdir(parents=True, exist_ok=True)
    for name, text in (FILES | files).items():
        (home / f"{name}.py").write_text(text, encoding="utf-8")
    (folder / "pyproject.toml").write_text(pyproject, encoding="utf-8")
    command = [
        sys.executable,
        "-P",
        str(ROOT / "src" / "gradspec_lab" / "house" / "rooms.py"),
        "--root",
        str(folder),
        "--arrows",
    ]
    done = subprocess.run(command, capture_output=True, text=True, env={}, timeout=60, check=False)
    return done.returncode, done.stdout


def test_rooms_layers_and_arrows_are_printed(tmp_path: Path) -> None:
    code, out = printed(tmp_path)
    assert code == 0
    assert out.splitlines() == [
        "gradspec: 4 rooms (0 packages), 3 layers",
        "  top",
        "  left  right",
        "  ground",
        "3 arrows between rooms, of 3 imports",
        "  left -> ground (1)",
        "  left -> right (1)",
        "  top -> left (1)",
        "0 back up, 1 within a layer, 0 circles",
        "  left -> right",
    ]


def test_an_arrow_back_up_and_a_circle_fail(tmp_path: Path) -> None:
    code, out = printed(tmp_path, ground="from gradspec import top\n")
    assert code == 1
    assert "1 back up, 1 within a layer, 1 circles\n  ground -> top\n" in out
    assert out.endswith("  ground - left - top\n")


def test_the_rooms_of_a_room_with_layers_are_looked_at_too(tmp_path: Path) -> None:
    house = tmp_path / "src" / "gradspec" / "house"
    house.mkdir(parents=True)
    for name, text in {"__init__": "", "upper": "", "lower": "from gradspec.house import upper\n"}.items():
        (house / f"{name}.py").write_text(text, encoding="utf-8")
    code, out = printed(tmp_path, pyproject=PYPROJECT + WITHIN)
    assert code == 1
    assert "1 within a layer, 0 circles\n" in out
    assert "gradspec.house: 2 rooms (0 packages), 2 layers\n  upper\n  lower\n1 arrows" in out
    assert out.endswith("1 back up, 0 within a layer, 0 circles\n  lower -> upper\n")


@pytest.mark.slow
def test_no_arrow_is_hidden_in_a_name() -> None:
    # `import_module("gradspec.text")` is an import that neither import-linter nor src/gradspec_lab/house/rooms.py sees.
    hidden = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in {"import_module", "__import__"}
        if any("gradspec" in ast.unparse(argument) for argument in call.args)
    ]
    # The lazy table of the public names, in the package that all rooms are in.
    assert [where.rpartition(":")[0] for where in hidden] == ["src/gradspec/__init__.py"]


def test_a_circle_is_all_rooms_that_reach_one_another() -> None:
    arrows = Counter({("a", "b"): 1, ("b", "c"): 1, ("c", "a"): 1, ("c", "d"): 1, ("e", "f"): 1, ("f", "e"): 1})
    assert list(circles_of(arrows)) == [["a", "b", "c"], ["e", "f"]]
