"""The table of what test files cost: each is there, and none of the quick tier is dear."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

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
