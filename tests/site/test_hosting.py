"""What hosts run exists: each session that a file of theirs names is in the noxfile, and publishes what it builds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from pages.inline_code import sessions

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
    (out,) = set(re.findall(r'"sphinx-build", "-n", .*"docs", "([^"]+)"\)', (ROOT / "noxfile.py").read_text("utf-8")))
    assert out in (ROOT / file).read_text(encoding="utf-8")


def test_every_change_runs_what_ci_runs() -> None:
    assert ".ci/run" in commands(".github/workflows/checks.yml")


def test_every_session_that_is_not_of_every_change_runs_each_week_or_says_why_not() -> None:
    weekly = yaml.safe_load((ROOT / ".github/workflows/weekly.yml").read_text(encoding="utf-8"))["jobs"]
    entries = [entry["session"].partition(" -- ")[0] for entry in weekly["run"]["strategy"]["matrix"]["include"]]
    named = [re.sub(r"^wheel-3\.\d+$", "wheel", name) for entry in entries for name in entry.split()]
    named += [
        command.removeprefix("nox -s ") for command in commands(".github/workflows/weekly.yml") if "$" not in command
    ]
    at_hand = {"serve"}  # for one who writes pages
    on_purpose = {"bench", "hashes"}  # of one quiet machine, of one who moves a pin, of one who commits
    every_change = {"tests", "doctests", "lint", "types", "docs", "environment"}
    weekly_sessions = {name for name in named if name in sessions()}
    assert weekly_sessions == sessions() - every_change - at_hand - on_purpose


def test_the_wheel_is_tested_each_week_on_every_python_that_its_session_has() -> None:
    weekly = yaml.safe_load((ROOT / ".github/workflows/weekly.yml").read_text(encoding="utf-8"))["jobs"]
    entries = weekly["run"]["strategy"]["matrix"]["include"]
    # `package` runs `wheel-3.11` behind it; the first Python of an entry is installed beside that of nox.
    pythons = {"3.11": ["3.11"]} | {
        name.removeprefix("wheel-"): entry["python"].split()
        for entry in entries
        for name in entry["session"].split()
        if name.startswith("wheel-")
    }
    (listed,) = re.findall(r"python=\[(.+?)\], default=False\)\ndef wheel\(", (ROOT / "noxfile.py").read_text("utf-8"))
    assert list(pythons) == re.findall(r"\d+\.\d+", listed)
    assert [name in installed for name, installed in pythons.items()] == [True] * len(pythons)
