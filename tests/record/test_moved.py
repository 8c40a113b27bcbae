"""What moved to another file, unchanged, is what was measured; what was changed on its way is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradspec._record import Source, reach_from

ROOT = Path(__file__).parents[2]
FILES = {
    "pack/__init__.py": "",
    "pack/laws/__init__.py": "",
    "pack/laws/area.py": "from pack.helpers import double\n\n\ndef area(x):\n    return double(x)\n",
    "pack/laws/edge.py": "from pack.helpers import double\n\n\ndef edge(x):\n    return -double(x)\n",
    "pack/helpers.py": "def double(x):\n    return 2 * x\n",
    "tools/measure/area.py": "from pack.laws.area import area\n\n\ndef measured(x):\n    return area(x)\n",
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def move(tree: Path, old: str, new: str) -> None:
    """Move a module, and follow it in what imports it."""
    (tree / new).parent.mkdir(parents=True, exist_ok=True)
    (tree / old).rename(tree / new)
    was, now = (name.removesuffix(".py").replace("/", ".") for name in (old, new))
    for file in tree.rglob("*.py"):
        file.write_text(file.read_text().replace(f"from {was} import", f"from {now} import"))


#: Of a definition, of one beside another one, of a whole module, of a script as a whole and of a name in it.
SOURCES = [
    ("pack.laws.area:area",),
    ("pack.laws.area:area", "pack.laws.edge:edge"),
    ("pack.laws.area",),
    ("tools/measure/area.py",),
    ("tools/measure/area.py:measured", "pack.laws.area:area"),
]


@pytest.mark.parametrize("roots", SOURCES, ids=" ".join)
@pytest.mark.parametrize(
    "moves",
    [
        {"pack/laws/area.py": "pack/laws/surface.py"},
        {"pack/laws/area.py": "pack/rooms/area.py"},
        {"pack/helpers.py": "pack/laws/support.py"},
        {"tools/measure/area.py": "tools/measure/surface.py"},
        {"tools/measure/area.py": "tools/area.py", "pack/laws/edge.py": "pack/edge.py"},
    ],
    ids=lambda moves: " ".join(moves.values()),
)
def test_what_moved_is_current_and_what_was_changed_on_its_way_is_not(
    tree: Path, roots: tuple[str, ...], moves: dict[str, str]
) -> None:
    source = Source.of(reach_from(), *roots, documents=[root for root in roots if root.startswith("pack.laws.area:")])
    for old, new in moves.items():
        move(tree, old, new)
    assert source.is_current(reach_from())
    files = {file.relative_to(tree).as_posix() for file in source.today(reach_from()).files(reach_from())}
    assert files <= {file.relative_to(tree).as_posix() for file in tree.rglob("*.py")}
    helpers = next(file for file in tree.rglob("*.py") if "2 * x" in file.read_text())
    helpers.write_text("def double(x):\n    return 3 * x\n")
    assert not source.is_current(reach_from())


def test_another_definition_of_the_same_name_is_not_the_one_that_moved(tree: Path) -> None:
    source = Source.of(reach_from(), "pack.laws.area:area")
    (tree / "pack/laws/area.py").unlink()
    (tree / "pack/laws/other.py").write_text("def area(x):\n    return 4 * x\n")
    (tree / "pack/laws/torn.py").write_text("def area(:\n")
    assert not source.is_current(reach_from())
    assert source.today(reach_from()).key == ""
