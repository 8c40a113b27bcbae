"""The fixture of the mini-projects."""

from __future__ import annotations

from pathlib import Path

import pytest

from sphinx_ext.handmade import Project, copied

#: pytest must not collect the mini-projects.
collect_ignore = ["roots"]


@pytest.fixture
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    """The mini-project that the test's parameter names; `test-function` has a record in which everything holds."""
    return copied(getattr(request, "param", "test-function"), tmp_path)
