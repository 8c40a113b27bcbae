"""The working copy of a process, and when it is made at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drift.edits import Site
from drift.working_copy import ROOT, WorkingCopy


@pytest.fixture(scope="session")
def copy(tmp_path_factory: pytest.TempPathFactory) -> WorkingCopy:
    """Return a copy whose site is built; the record is that of `GRADSPEC_DRIFT`, made by `nox -s drift`."""
    record = os.environ.get("GRADSPEC_DRIFT")
    if not record:
        pytest.skip("the drift suite takes minutes: `nox -s drift` runs it")
    made = WorkingCopy.made(tmp_path_factory.mktemp("drift") / "tree", Path(ROOT, record))
    done = made.passes_unedited(Site())
    assert done.returncode == 0, f"the tree without an edit does not build:\n{done.output}"
    return made
