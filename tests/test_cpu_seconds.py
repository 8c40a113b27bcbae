"""What tests cost: no file of the quick tier is dear, and the list of dear cases is followed."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import cpu_seconds
from cpu_seconds import DEAR, dear
from slow_part import part

ROOT = Path(__file__).parents[1]
#: CPU seconds from which a file belongs in the slow tier, or is split.
MOST = 80


def faults(table: dict[str, float], root: Path = ROOT) -> list[str]:
    """Return what is wrong with a table of CPU seconds by file."""
    gone = [f"{name} is not there" for name in table if not (root / name).is_file()]
    dear = [
        f"{name} costs {seconds} CPU seconds: mark what is slow" for name, seconds in table.items() if seconds > MOST
    ]
    return gone + dear


def test_no_file_of_the_quick_tier_is_dear() -> None:
    table = tomllib.loads((ROOT / "tests" / "cpu_seconds.toml").read_text(encoding="utf-8"))
    assert len(table["quick"]) > 50
    assert faults(table["quick"]) == []
    assert faults(dict.fromkeys(table["slow"], 0)) == []


def test_a_file_that_is_gone_or_dear_is_named() -> None:
    here = "tests/test_cpu_seconds.py"
    assert faults({here: MOST}) == []
    assert faults({here: MOST + 1, "tests/gone.py": 1}) == [
        "tests/gone.py is not there",
        f"{here} costs {MOST + 1} CPU seconds: mark what is slow",
    ]


def gone(listed: list[str]) -> list[str]:
    """Return the tests of a list that no file has, as far as its text says it."""
    return [
        name
        for name in listed
        if not (found := re.match(r"([\w/]+\.py)::(\w+)(\[|$)", name))
        or not (ROOT / found[1]).is_file()
        or f"def {found[2]}(" not in (ROOT / found[1]).read_text(encoding="utf-8")
    ]


def test_each_dear_case_is_listed_once_and_of_a_test_that_is_there() -> None:
    listed = DEAR.read_text(encoding="utf-8").splitlines()
    assert len(listed) > 100
    assert listed == sorted(set(listed))
    assert gone(listed) == []
    here = "tests/test_cpu_seconds.py::test_"
    assert gone([f"{here}nothing", f"{here}a_part_may_be_all", "tests/gone.py::test_a"]) == [
        f"{here}nothing",
        "tests/gone.py::test_a",
    ]


def test_the_cheapest_case_of_a_test_stays_quick_unless_it_is_dear_itself() -> None:
    assert dear({"f::a[1]": 0.9, "f::a[2]": 0.8, "f::a[3]": 0.1}) == ["f::a[1]", "f::a[2]"]
    assert dear({"f::a[1]": 0.9, "f::a[2]": 0.8}) == ["f::a[1]"]
    assert dear({"tests/pages/test_pages.py::a": 9.0, "tests/laws/test_laws.py::a": 9.0}) == [
        "tests/laws/test_laws.py::a"
    ]
    assert dear({"f::a[1]": 2.0, "f::a[2]": 1.6, "f::b": 0.6, "f::c": 0.4}) == ["f::a[1]", "f::a[2]", "f::b"]


class Item:
    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid
        self.marks: list[str] = []

    def add_marker(self, mark: str) -> None:
        self.marks.append(mark)


def test_what_is_listed_is_slow() -> None:
    items = [Item(DEAR.read_text(encoding="utf-8").splitlines()[0]), Item("tests/test_cpu_seconds.py::test_other")]
    cpu_seconds.pytest_collection_modifyitems(items)  # type: ignore[arg-type]
    assert [item.marks for item in items] == [["slow", "dear"], []]


FILES = [*4 * ["tests/cli/test_check.py"], *4 * ["tests/watch/test_command.py"], *92 * ["tests/laws/test_laws.py"]]
TESTS = [f"{file}::test_{k}" for k, file in enumerate(FILES)]
TABLE = {"tests/cli/test_check.py": 40, "tests/watch/test_command.py": 40, "tests/laws/test_laws.py": 92}


def taken(seconds: float, edited: list[str], seed: str = "a commit") -> Counter[str]:
    return Counter(test.partition("::")[0] for test in part(TESTS, FILES, TABLE, seconds, edited, seed))


def test_half_of_a_part_is_near_what_a_change_edits() -> None:
    assert taken(60, ["src/gradspec/_watch/_watch.py"])["tests/watch/test_command.py"] >= 3
    assert taken(60, ["tests/cli/test_check.py"])["tests/cli/test_check.py"] >= 3


def test_a_part_costs_no_more_than_was_asked_for_and_another_commit_takes_another_one() -> None:
    found = taken(60, [])
    assert sum(count * TABLE[file] / FILES.count(file) for file, count in found.items()) <= 60
    assert found["tests/laws/test_laws.py"] > 10

    once, again, other = (part(TESTS, FILES, TABLE, 60, [], seed) for seed in ("one", "one", "another"))
    assert once == again != other


def test_a_part_may_be_all() -> None:
    assert sorted(part(TESTS, FILES, TABLE, 1000, [], "a commit")) == sorted(TESTS)
