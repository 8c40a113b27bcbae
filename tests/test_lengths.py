"""No file of the package is longer than one thought takes: 400 lines."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LONGEST = 400


def longer_than(limit: int, root: Path) -> dict[str, int]:
    """Return the files below a folder that have more lines, and how many these have."""
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in sorted(root.rglob("*.py"))}
    return {path.relative_to(root).as_posix(): length for path, length in lengths.items() if length > limit}


@pytest.mark.parametrize("package", ["gradspec", "gradspec_pytest"])
def test_a_file_is_one_idea(package: str) -> None:
    assert longer_than(LONGEST, ROOT / "src" / package) == {}


def test_one_line_too_many_is_found(tmp_path: Path) -> None:
    for name, length in {"right.py": LONGEST, "wrong.py": LONGEST + 1}.items():
        (tmp_path / name).write_text("pass\n" * length, encoding="utf-8")
    assert longer_than(LONGEST, tmp_path) == {"wrong.py": LONGEST + 1}
