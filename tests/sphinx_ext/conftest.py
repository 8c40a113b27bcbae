"""The fixture of the mini-projects."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sphinx_ext.handmade import ROOTS, Project, report

#: pytest must not collect the mini-projects.
collect_ignore = ["roots"]


@pytest.fixture
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    """The mini-project that the test's parameter names, with a record of its source if it is `test-function`."""
    root = getattr(request, "param", "test-function")
    made = Project(shutil.copytree(ROOTS / root, tmp_path / "source"))
    if root == "test-function":
        made.write(report(made))
    return made
