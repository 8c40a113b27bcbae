"""The working copy of a process, and which edits are made in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drift.drawing import drawn
from drift.edits import Edit, Site
from drift.working_copy import ROOT, WorkingCopy


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("drift")
    group.addoption("--drawn", type=int, metavar="N", help="make N edits, drawn at random, and those of changed files")
    group.addoption("--since", metavar="COMMIT", help="which files have changed: since the commit before, by default")


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    count = config.getoption("--drawn", default=None)
    if count is None:
        return
    made = [item for item in items if isinstance(item, pytest.Function) and "copy" in item.fixturenames]
    edits: list[Edit] = [item.callspec.params["edit"] for item in made]
    try:
        kinds = drawn(edits, count, config.getoption("--since"), ROOT)
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    left = []
    for item, edit in zip(made, edits, strict=True):
        if edit.kind not in kinds:
            left.append(item)
        elif isinstance(edit.check, Site):
            # A process builds the whole site before its first edit: for a few edits, one process is enough.
            item.add_marker(pytest.mark.xdist_group("site"))
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


@pytest.fixture(scope="session")
def copy(tmp_path_factory: pytest.TempPathFactory) -> WorkingCopy:
    """Return a copy of the tree; the record is that of `GRADSPEC_DRIFT`, made by `nox -s lab -- drift`."""
    record = os.environ.get("GRADSPEC_DRIFT")
    if not record:
        pytest.skip("the drift suite takes minutes: `nox -s lab -- drift` runs it")
    return WorkingCopy.made(tmp_path_factory.mktemp("drift") / "tree", Path(ROOT, record))
