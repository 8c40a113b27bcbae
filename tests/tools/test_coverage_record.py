"""The record of coverage: counted from coverage's report by room, with the reason of what is left out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from coverage_record import OUT, ROOT, left_out, main, read_coverage, room_of, rooms, total
from gradspec._record import RecordError, update_experiment

PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def report(*, branches: bool = True) -> dict[str, Any]:
    files = {
        "src/gradspec/law.py": (3, 4),
        "src/gradspec/_record/_file.py": (5, 6),
        "src/gradspec/_record/_key.py": (0, 2),
        "src/gradspec/__init__.py": (0, 0),
    }
    return {
        "meta": {"version": "7.17.3", "branch_coverage": branches},
        "files": {
            path: {"summary": {"covered_branches": taken, "num_branches": count}}
            for path, (taken, count) in files.items()
        },
    }


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "coverage.json").write_text(json.dumps(report()), encoding="utf-8")
    words = [str(tmp_path / "coverage.json"), "--tests", "tests/record", "--out", str(tmp_path / "record.json")]
    monkeypatch.setattr(sys, "argv", ["coverage_record.py", *words])
    main()
    return tmp_path / "record.json"


def test_the_record_counts_branches_by_room_and_says_what_is_left_out(made: Path) -> None:
    record = read_coverage(made)
    assert record["rooms"] == {
        "__init__": {"taken": 0, "branches": 0},
        "_record": {"taken": 5, "branches": 8},
        "law": {"taken": 3, "branches": 4},
    }
    assert record["total"] == {"taken": 8, "branches": 12, "share": 0.6667}
    assert (record["tests"], record["provenance"]["coverage"]) == (["tests/record"], "7.17.3")
    assert record["left out"] == left_out(PYPROJECT)
    assert record["sources"]["experiment"]["key"]


def test_what_is_left_out_has_its_reason_from_the_settings() -> None:
    found = left_out(PYPROJECT)
    assert found["src/gradspec/sphinx_ext/*"] == "runs in a Sphinx process, below tests/sphinx_ext"
    assert found["if TYPE_CHECKING:"] == "never run"
    with pytest.raises(ValueError, match="does not say why coverage leaves out 'if TYPE_CHECKING:'"):
        left_out(PYPROJECT.replace('"if TYPE_CHECKING:", # never run', '"if TYPE_CHECKING:",'))


def test_a_report_of_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="the report is of lines"):
        rooms(report(branches=False))
    with pytest.raises(ValueError, match=r"tests/conftest\.py is not in src/gradspec/"):
        room_of("tests/conftest.py")
    with pytest.raises(ValueError, match="has no branch"):
        total({})


def test_a_total_that_is_not_the_sum_of_the_rooms_is_refused(made: Path) -> None:
    record = read_coverage(made)
    update_experiment({**record, "total": {**record["total"], "taken": 12}}, made)
    with pytest.raises(RecordError, match="its total is not the sum of its rooms"):
        read_coverage(made)


def test_a_committed_record_is_of_what_the_session_runs_and_leaves_out() -> None:
    if not OUT.exists():
        pytest.skip("it is not measured yet: nox -s coverage")
    record = read_coverage(OUT)
    assert record["left out"] == left_out(PYPROJECT)
    assert all((ROOT / folder).is_dir() for folder in record["tests"])
