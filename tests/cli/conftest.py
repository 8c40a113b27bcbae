"""Each test runs in an empty folder beside the small specs of `specs/`, and leaves no import behind."""

import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradspec.cli import main


@pytest.fixture(scope="session", autouse=True)
def _compiled_before(compiler):
    """Checks run in forks of this process."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for source in (Path(__file__).parent / "specs").glob("*.py"):
        shutil.copy(source, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def gradspec(folder):
    """Run the command line in this process."""
    return lambda *words: CliRunner().invoke(main, words)
