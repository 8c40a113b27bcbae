"""A pytest plugin: CPU seconds of each test, of its own process and of those that it started, and the tier by them.

`--cpu-seconds PATH` writes a table, `slow` or `quick` after the tier that runs, of `"file" = seconds`, the largest
first. It is how `tests/cpu_seconds.toml` is made; no test asserts a time that it takes itself.

`tests/slow_cases.txt` lists the tests that are slow because they cost much, by the rule of `dear`; the mark `slow` is
for those that are slow by what they do. `pytest -m "not slow or dear" --slow-cases PATH` measures and writes the list.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from gradspec._clock import tree_of

_KEY = pytest.StashKey[Counter[str]]()
DEAR = Path(__file__).with_name("slow_cases.txt")
#: CPU seconds from which a case of a test is slow; of several cases the cheapest stays quick up to three times these.
MOST = 0.4
#: What holds the words to the code: asked of each change, whatever it costs.
ALWAYS = ("tests/pages/", "tests/test_readme.py", "tests/test_sentences.py", "tests/test_how_to.py")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that asks for the table."""
    parser.addoption("--cpu-seconds", metavar="PATH", help="Write the CPU seconds of each test file to PATH.")
    parser.addoption("--slow-cases", metavar="PATH", help="Write the tests that cost much to PATH.")


def pytest_configure(config: pytest.Config) -> None:
    """Begin with an empty table."""
    config.addinivalue_line("markers", "dear: slow because it costs much, as tests/slow_cases.txt says")
    config.stash[_KEY] = Counter()


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that cost much."""
    listed = set(DEAR.read_text(encoding="utf-8").splitlines())
    for item in items:
        if item.nodeid in listed:
            item.add_marker("slow")
            item.add_marker("dear")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None):
    """Note what a test costs."""
    if not (item.config.getoption("--cpu-seconds") or item.config.getoption("--slow-cases")):
        return (yield)
    before = _spent()
    try:
        return (yield)
    finally:
        item.config.stash[_KEY][item.nodeid] += max(0.0, _spent() - before)


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
    spent = Counter[str]()
    for name, seconds in config.stash[_KEY].items():
        spent[name.partition("::")[0]] += seconds
    if path := config.getoption("--slow-cases"):
        Path(path).write_text("".join(f"{name}\n" for name in dear(config.stash[_KEY])), encoding="utf-8")
    if not (path := config.getoption("--cpu-seconds")):
        return
    rows = [f'"{name}" = {seconds:.1f}\n' for name, seconds in spent.most_common() if seconds >= 1]
    tier = "slow" if config.option.markexpr == "slow" else "quick"
    Path(path).write_text("".join([f"[{tier}]\n", *rows]), encoding="utf-8")
    terminalreporter.write_line(f"{sum(spent.values()):.0f} CPU seconds in {len(spent)} files: {path}")


def dear(spent: Mapping[str, float]) -> list[str]:
    """Return the tests that cost more than MOST, without the cheapest of a test's cases if that is not dear itself."""
    cases: dict[str, list[str]] = {}
    for name in sorted(spent, key=spent.__getitem__):
        cases.setdefault(name.partition("[")[0], []).append(name)
    stay = {names[0] for names in cases.values() if len(names) > 1 and spent[names[0]] <= 3 * MOST}
    return sorted(
        name for name, cost in spent.items() if cost > MOST and name not in stay and not name.startswith(ALWAYS)
    )


def _spent() -> float:
    # RUSAGE_CHILDREN counts a server of forks when it ends, all at once and to whichever file ends it.
    return sum(process.cpu for process in tree_of(os.getpid()).values())
