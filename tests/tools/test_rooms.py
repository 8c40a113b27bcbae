"""tools/rooms.py finds an arrow that runs back up, and a circle."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

from rooms import circles_of

ROOT = Path(__file__).parents[2]
PYPROJECT = """\
[[tool.importlinter.contracts]]
type = "layers"
containers = ["gradspec"]
layers = ["top", "left | right", "ground"]
"""
FILES = {
    "__init__": "",
    "top": "from gradspec import left\n",
    "left": "from gradspec import ground, right\n",
    "right": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from gradspec import top\n",
    "ground": "",
}


def printed(folder: Path, **files: str) -> tuple[int, str]:
    home = folder / "src" / "gradspec"
    home.mkdir(parents=True)
    for name, text in (FILES | files).items():
        (home / f"{name}.py").write_text(text, encoding="utf-8")
    (folder / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    command = [sys.executable, "-P", str(ROOT / "tools" / "rooms.py"), "--root", str(folder), "--arrows"]
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


def test_a_circle_is_all_rooms_that_reach_one_another() -> None:
    arrows = Counter({("a", "b"): 1, ("b", "c"): 1, ("c", "a"): 1, ("c", "d"): 1, ("e", "f"): 1, ("f", "e"): 1})
    assert list(circles_of(arrows)) == [["a", "b", "c"], ["e", "f"]]
