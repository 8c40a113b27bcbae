"""What hosts run exists: each session that a file of theirs names is in the noxfile, and publishes what it builds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from pages.inline_code import sessions, tasks

ROOT = Path(__file__).parents[2]


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
    assert set(named) <= sessions()


@pytest.mark.parametrize("file", [".readthedocs.yaml", ".github/workflows/pages.yml"])
def test_a_host_publishes_the_folder_that_is_built(file: str) -> None:
    (out,) = set(
        re.findall(
            r'"sphinx-build", "-n", .*"docs", "([^"]+)"\)',
            (ROOT / "src/gradspec_lab/tasks/_environment.py").read_text("utf-8"),
        )
    )
    assert out in (ROOT / file).read_text(encoding="utf-8")


def test_every_change_runs_what_ci_runs() -> None:
    assert ".ci/run" in commands(".github/workflows/checks.yml")


def test_every_session_and_task_that_is_not_of_every_change_runs_each_week_or_says_why_not() -> None:
    weekly = yaml.safe_load((ROOT / ".github/workflows/weekly.yml").read_text(encoding="utf-8"))["jobs"]
    words = [entry["session"].split() for entry in weekly["run"]["strategy"]["matrix"]["include"]]
    words += [c.removeprefix("nox -s ").split() for c in commands(".github/workflows/weekly.yml") if "$" not in c]
    named, asked = {entry[0] for entry in words}, {entry[2] for entry in words if entry[:2] == ["lab", "--"]}
    at_hand = {"serve", "wheel", "cuda"}  # for one who writes pages; behind `package`; on a machine with a GPU
    on_purpose = {"bench", "hashes", "--list"}  # of one quiet machine, of one who moves a pin
    every_change = {"tests", "doctests", "lint", "types", "docs"}  # and a part of the slow tests
    assert named & sessions() == sessions() - every_change - at_hand
    assert asked == tasks() - on_purpose


def test_the_wheel_is_tested_each_week_on_the_pythons_that_it_is_for() -> None:
    weekly = yaml.safe_load((ROOT / ".github/workflows/weekly.yml").read_text(encoding="utf-8"))["jobs"]
    entries = weekly["run"]["strategy"]["matrix"]["include"]
    pythons = [entry.get("python", "3.11") for entry in entries if entry["session"] == "package"]
    assert pythons == ["3.11", "3.12", "3.13", "3.14"]
