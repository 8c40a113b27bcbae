"""What hosts run exists: each session that a file of theirs names is in the noxfile, and publishes what it builds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SESSIONS = re.findall(r"^def (\w+)\(session", (ROOT / "noxfile.py").read_text(encoding="utf-8"), re.MULTILINE)


def commands(file: str) -> list[str]:
    """Return the commands that a host runs."""
    settings = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))
    if "build" in settings:
        return [str(command) for command in settings["build"]["commands"]]
    return [step["run"] for job in settings["jobs"].values() for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("file", [".readthedocs.yaml", ".github/workflows/pages.yml"])
def test_a_host_runs_the_session_that_builds_and_tests_the_site(file: str) -> None:
    named = [command.removeprefix("nox -s ") for command in commands(file) if command.startswith("nox ")]
    assert named == ["docs"]
    assert set(named) <= set(SESSIONS)


@pytest.mark.parametrize("file", [".readthedocs.yaml", ".github/workflows/pages.yml"])
def test_a_host_publishes_the_folder_that_is_built(file: str) -> None:
    (out,) = set(re.findall(r'"sphinx-build", .*"docs", "([^"]+)"\)', (ROOT / "noxfile.py").read_text("utf-8")))
    assert out in (ROOT / file).read_text(encoding="utf-8")
