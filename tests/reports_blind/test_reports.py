"""Audits of rebuilt reports and of sound functions, written by somebody who had not seen the engine: a few drawn anew.

`python run.py pairs` and `python run.py sound` ask of all of them.
"""

from __future__ import annotations

import random
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from reports_blind.run import asked, jobs

HERE = Path(__file__).parent
KNOWN: dict[str, dict[str, str]] = tomllib.loads((HERE / "known.toml").read_text(encoding="utf-8"))
#: How many of each are asked.
DRAWN = 5


def _drawn(sort: str) -> list[Any]:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=HERE, capture_output=True, text=True, check=False).stdout
    return random.Random(f"{sort} {commit}").sample(list(jobs(sort, [])), DRAWN)


@pytest.mark.slow
@pytest.mark.parametrize("job", _drawn("pairs"), ids=lambda job: job[0])
def test_a_defect_fails_and_the_mended_one_passes(job: Any) -> None:
    folder, role = job[0].split(" ")
    said = asked(job)

    expected = (role == "name") != (folder in KNOWN["defect" if role == "name" else "mended"])
    assert said.get("fails") is expected, said.get("error") or said["findings"]


@pytest.mark.slow
@pytest.mark.parametrize("job", _drawn("sound"), ids=lambda job: job[0])
def test_a_sound_function_passes_with_at_most_one_question(job: Any) -> None:
    said = asked(job)

    assert said.get("fails") is (job[3] in KNOWN["sound"]), said.get("error") or said["findings"]
    assert said["questions"] <= 1


def test_what_is_known_is_of_a_pair_or_a_function_there_is() -> None:
    folders = {job[0].split(" ")[0] for job in jobs("pairs", [])}
    names = {job[3] for job in jobs("sound", [])}

    assert {*KNOWN["mended"], *KNOWN["defect"]} <= folders
    assert set(KNOWN["sound"]) <= names
