"""A pytest plugin: CPU seconds of each test file, of its own process and of those that it started.

`--cpu-seconds PATH` writes a table, `slow` or `quick` after the tier that runs, of `"file" = seconds`, the largest
first. It is how `tests/cpu_seconds.toml` is made, which says what belongs in which tier; no test asserts a time that it
takes itself.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from gradspec._clock import tree_of

_KEY = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that asks for the table."""
    parser.addoption("--cpu-seconds", metavar="PATH", help="Write the CPU seconds of each test file to PATH.")


def pytest_configure(config: pytest.Config) -> None:
    """Begin with an empty table."""
    config.stash[_KEY] = Counter()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None):
    """Add what a test costs to its file."""
    if item.config.getoption("--cpu-seconds") is None:
        return (yield)
    before = _spent()
    try:
        return (yield)
    finally:
        item.config.stash[_KEY][item.nodeid.partition("::")[0]] += max(0.0, _spent() - before)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the table of a worker of xdist to the process that started it."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["cpu_seconds"] = dict(session.config.stash[_KEY])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error) -> None:
    """Add the table of a worker."""
    node.config.stash[_KEY].update(getattr(node, "workeroutput", {}).get("cpu_seconds", {}))


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    """Write the table if it was asked for; print the sum."""
    path, spent = config.getoption("--cpu-seconds"), config.stash[_KEY]
    if path is None:
        return
    rows = [f'"{name}" = {seconds:.1f}\n' for name, seconds in spent.most_common() if seconds >= 1]
    tier = "slow" if config.option.markexpr == "slow" else "quick"
    Path(path).write_text("".join([f"[{tier}]\n", *rows]), encoding="utf-8")
    terminalreporter.write_line(f"{sum(spent.values()):.0f} CPU seconds in {len(spent)} files: {path}")


def _spent() -> float:
    # RUSAGE_CHILDREN counts a server of forks when it ends, all at once and to whichever file ends it.
    return sum(process.cpu for process in tree_of(os.getpid()).values())
