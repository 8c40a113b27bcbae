"""The record of what the laws said of the operators of strangers: each has a row, and each defect is found."""

from __future__ import annotations

import importlib
import re
from functools import cache
from typing import Any

import pytest

from gradspec._record import read_experiment
from gradspec_lab.strangers.operator_specs import OPERATORS, subjects

FOUND = {"wrong silently", "refused with an error"}
#: The defects that are a waste, or that a law meets before it can judge, with the law and what it says of their rank.
OTHERWISE = {
    "strangers_diseased::matmul": ("needs_input_grad", "waste"),
    "strangers_diseased::reverse": ("dynamic_shapes", "waste"),
    # It raises in a call without gradients, which each law begins with.
    "HeadLoss": ("primal", "could not be judged"),
}


@cache
def rows() -> dict[str, dict[str, Any]]:
    """Return the rows of the record by name."""
    return {row["name"]: row for row in read_experiment(OPERATORS / "record.json")["rows"]}


def ranks(name: str) -> set[str]:
    """Return the ranks of what was found of a subject."""
    return {found["rank"] for found in rows()[name]["findings"]}


def addresses() -> list[str]:
    """Return the addresses in the docstrings of the reports."""
    text = (OPERATORS / "reports.py").read_text(encoding="utf-8")
    return re.findall(r'"""[^"]*?(https://github\.com/[\w./-]+\d)', text)


def test_every_subject_has_a_row() -> None:
    assert [(name, row["module"], row["defect"]) for name, row in rows().items()] == [
        (name, subject["module"], subject["defect"]) for name, subject in subjects().items()
    ]


@pytest.mark.parametrize("name", [name for name, row in subjects().items() if row["defect"] is None])
def test_a_sound_operator_is_not_accused(name: str) -> None:
    assert not ranks(name) & FOUND


@pytest.mark.parametrize("name", [name for name, row in subjects().items() if row["defect"] and name not in OTHERWISE])
def test_a_defect_is_found(name: str) -> None:
    assert ranks(name) & FOUND


@pytest.mark.parametrize("name", OTHERWISE)
def test_a_defect_of_another_rank_is_found_by_its_law(name: str) -> None:
    found = [(found["law"], found["rank"]) for found in rows()[name]["findings"]]
    assert OTHERWISE[name] in found


def test_twelve_reports_of_the_survey_are_rebuilt() -> None:
    surveyed = importlib.import_module("reports").SURVEYED

    assert len(set(surveyed)) == len(surveyed) >= 12
    assert len(set(addresses())) == len(addresses())
    assert set(surveyed) <= set(addresses())
