"""A pytest plugin: a part of the slow tests, those near what changed first and others drawn at random.

`--slow-part SECONDS` is for a check of one change: `nox -s slow` runs all of them in as much as 20 CPU minutes. A test
costs its share of what `tests/cpu_seconds.toml` says of its file. Half of the seconds go to the files that the change
edits and to the folders of the rooms that it edits, and the rest to others, drawn by the name of the commit: a second
run takes the same ones, and the next commit others.
"""

from __future__ import annotations

import random
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from commits import changed, git

ROOT = Path(__file__).parents[1]
_LEFT = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that asks for a part."""
    parser.addoption("--slow-part", metavar="SECONDS", type=float, help="Run slow tests of so many CPU seconds.")


@pytest.hookimpl(trylast=True)  # of the tests that -m has chosen
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a part, if it was asked for."""
    seconds = config.getoption("--slow-part")
    if seconds is None:
        return
    files = [str(item.path.relative_to(ROOT)) for item in items]
    table = tomllib.loads((ROOT / "tests" / "cpu_seconds.toml").read_text(encoding="utf-8"))["slow"]
    kept = set(
        part([item.nodeid for item in items], files, table, seconds, changed(ROOT), git(ROOT, "rev-parse", "HEAD"))
    )
    left = [item for item in items if item.nodeid not in kept]
    config.stash[_LEFT] = len(left)
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item.nodeid in kept]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand what a worker of xdist has left out to the process that started it."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(_LEFT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error) -> None:
    """Take what a worker has left out: each of them the same."""
    node.config.stash[_LEFT] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    """Say how many tests are left out."""
    if left := config.stash.get(_LEFT, 0):
        terminalreporter.write_line(f"{left} tests are left out: `nox -s slow` runs them all")


def part(
    tests: Sequence[str],
    files: Sequence[str],
    table: Mapping[str, float],
    seconds: float,
    edited: Sequence[str],
    seed: str,
) -> list[str]:
    """Return the tests to run: half of the seconds for what is near the files that were edited, the rest at random.

    Args:
        tests: their names.
        files: the file of each.
        table: CPU seconds by file.
        seconds: how many there are.
        edited: the files that a change edits.
        seed: what the others are drawn by.
    """
    among = Counter(files)
    costs = {test: table.get(file, 1.0) / among[file] for test, file in zip(tests, files, strict=True)}
    rooms = {f"tests/{path.split('/')[2].lstrip('_')}/" for path in edited if path.startswith("src/gradspec/")}
    near = [t for t, file in zip(tests, files, strict=True) if file in edited or file.startswith(tuple(rooms))]
    order = random.Random(seed)
    found: list[str] = []
    for some, most in ((near, seconds / 2), (tests, seconds)):
        for test in order.sample(some, len(some)):
            if test not in found and sum(map(costs.__getitem__, found)) + costs[test] <= most:
                found.append(test)
    return found
