"""No file of the package is longer than one idea takes: 200 lines, but for those that are listed with a reason."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST = 200
SPECIMENS = "specimens of one sort, read one by one; what is wrong with each is told from its neighbours"
#: The files that are longer, and why they are not split.
LONGER = {
    "gradspec/selftest/_mutations.py": "one table, above it the function that each of its rows names",
    "gradspec/selftest/specimens/diseased.py": SPECIMENS,
    "gradspec/selftest/specimens/further.py": SPECIMENS,
    "gradspec/selftest/specimens/mixed.py": SPECIMENS,
    "gradspec/selftest/specimens/modules.py": SPECIMENS,
    "gradspec/selftest/specimens/noisy.py": SPECIMENS,
    "gradspec/selftest/specimens/operators.py": SPECIMENS,
    "gradspec/selftest/specimens/stateful.py": SPECIMENS,
    "gradspec/selftest/specimens/text.py": SPECIMENS,
}


def longer_than(limit: int, root: Path) -> dict[str, int]:
    """Return the files below a folder that have more lines, and how many these have."""
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in sorted(root.rglob("*.py"))}
    return {path.relative_to(root).as_posix(): length for path, length in lengths.items() if length > limit}


def test_a_file_is_one_idea_or_is_listed_with_a_reason() -> None:
    # A file that is listed and no longer too long is an error too: the list stays as short as it can be.
    assert sorted(longer_than(LONGEST, ROOT / "src")) == sorted(LONGER)


def test_one_line_too_many_is_found(tmp_path: Path) -> None:
    for name, length in {"right.py": LONGEST, "wrong.py": LONGEST + 1}.items():
        (tmp_path / name).write_text("pass\n" * length, encoding="utf-8")
    assert longer_than(LONGEST, tmp_path) == {"wrong.py": LONGEST + 1}
