"""The record of coverage: counted from coverage's report by room, with the reason of what is left out."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradspec._engine import _parallel
from gradspec._engine._child import Child
from gradspec._engine._verify import verify
from gradspec._record import RecordError, update_experiment
from gradspec.law import HOLDS, Finding, Law, Trial
from gradspec_lab.campaigns.coverage_record import OUT, ROOT, left_out, main, read_coverage, room_of, rooms, total
from gradspec_lab.specimens import SCALE
from in_one_process import let_go, together

pytestmark = pytest.mark.slow

#: The folders of tests that measure nothing of the package that others do not, or need a built site or a quiet machine.
NOT_COVERING = {"browser", "drift", "examples", "pages", "reports_blind", "site", "strangers"}
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


def test_what_is_left_out_has_its_reason_from_the_settings() -> None:
    found = left_out(PYPROJECT)
    assert found["*/gradspec_lab/specimens/*"].startswith("wrong on purpose")
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
        pytest.skip("it is not measured yet: nox -s lab -- coverage")
    record = read_coverage(OUT)
    assert record["left out"] == left_out(PYPROJECT)
    assert all((ROOT / folder).is_dir() for folder in record["tests"])


def test_each_folder_of_tests_is_measured_or_is_named_here() -> None:
    (covering,) = re.findall(
        r"^COVERING = \[(.+?)^\]",
        (ROOT / "src" / "gradspec_lab" / "tasks" / "_tasks.py").read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert set(re.findall(r'"(\w+)[/\w]*"', covering)) == folders - NOT_COVERING


#: What the package does with processes: a fork that ends by os._exit, and a new Python in another folder.
PROCESSES = """
import os, subprocess, sys
import gradspec._one_line as a
if len(sys.argv) > 1:
    import gradspec_lab.specimens
    a.one_line(ValueError("in a new process"))
elif child := os.fork():
    os.waitpid(child, 0)
    subprocess.run([sys.executable, __file__, "new"], check=True, cwd=os.path.dirname(__file__))
else:
    a.visible_data({"in": ["a", "fork"]})
    os._exit(0)
"""


def test_coverage_follows_into_forks_and_new_processes(tmp_path: Path) -> None:
    pytest.importorskip("coverage")
    program, data = tmp_path / "program.py", tmp_path / "data"
    program.write_text(PROCESSES, encoding="utf-8")
    env = {**os.environ, "COVERAGE_FILE": str(data)}

    def coverage(*words: str) -> None:
        subprocess.run([sys.executable, "-m", "coverage", *words], cwd=ROOT, env=env, check=True, capture_output=True)

    coverage("run", str(program))
    files = list(tmp_path.glob("data.*"))
    coverage("combine", "--quiet")
    coverage("json", "--quiet", "-o", str(tmp_path / "report.json"))
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))["files"]
    found = report["src/gradspec/_one_line.py"]["functions"]

    assert len(files) >= 3
    assert [path for path in report if "specimens" in path] == []
    assert {name: found[name]["summary"]["covered_lines"] > 0 for name in ("one_line", "visible_data")} == {
        "one_line": True,
        "visible_data": True,
    }


def test_a_child_may_end_by_itself_where_coverage_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    def code() -> int:
        child = Child(str, time_limit=60)
        assert child.ask(3) == "3"
        return child._reap()[0]

    assert code() == -signal.SIGKILL
    monkeypatch.setattr(Child, "_reap", let_go)
    assert code() == 0


def test_laws_run_one_at_a_time_where_coverage_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set()

    def note(trial: Trial) -> Finding:
        seen.add((os.getpid(), threading.get_ident()))
        return HOLDS

    law = Law(name="noting", family="values", statement="x", check=note, doc="It notes.")
    specs = [replace(SCALE, name=f"scale_{number}") for number in range(40)]  # as many as pay for two processes
    monkeypatch.setattr(_parallel, "processors", lambda: 2)
    try:
        together(True)
        verify(specs, [law])
    finally:
        together(False)
    assert seen == {(os.getpid(), threading.get_ident())}
