"""The table of what test files cost: each is there, and none of the quick tier is dear."""

from __future__ import annotations

import tomllib
from pathlib import Path

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
    assert len(table) > 50
    assert faults(table) == []


def test_a_file_that_is_gone_or_dear_is_named() -> None:
    here = "tests/test_cpu_seconds.py"
    assert faults({here: MOST}) == []
    assert faults({here: MOST + 1, "tests/gone.py": 1}) == [
        "tests/gone.py is not there",
        f"{here} costs {MOST + 1} CPU seconds: mark what is slow",
    ]
