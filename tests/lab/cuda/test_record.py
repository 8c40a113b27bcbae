"""The summary of a device: written early, whatever ends the run, read again as it was, and expanded by a build."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gradspec.law import LIMIT, Status
from gradspec_lab.__main__ import main
from gradspec_lab._summary import CUDA, read_form, read_summary, summary_text
from gradspec_lab.cuda import _crew, record
from gradspec_lab.cuda._asked import Asked

ROOT = Path(__file__).parents[3]
SPEC = "gradspec.functions:GRAD_FACTOR"
DYING = """
import os, signal, torch
from gradspec.spec import Case, FunctionSpec

def scaled(x):
    if x.numel() == 3:
        os.kill(os.getpid(), signal.SIGSEGV)
    return 2 * x

def cases(make):
    yield Case(name="two", args=(make(2),))
    yield Case(name="three", args=(make(3),))
    yield Case(name="four", args=(make(4),))

DYING = FunctionSpec(name="dying", function=scaled, primal=lambda x: 2 * x, wrt=("x",), cases=cases)
"""


def asked(*laws: str, target: str = SPEC) -> Asked:
    return Asked(device="cpu", backend="aot_eager", targets=(target,), laws=laws)


@pytest.mark.slow
def test_the_command_measures_a_selection_and_its_summary_is_read_again(tmp_path: Path) -> None:
    options = ["--device", "cpu", "--backend", "aot_eager", "--target", SPEC, "--law", "vjp", "--law", "compile"]
    where = ["--out", str(tmp_path), "--jobs", "1", "--commit", "abc123", "--laws-only"]
    done = CliRunner().invoke(main, ["measure", "cuda", *options, *where])
    assert done.exit_code == 0, done.output
    found = read_summary(tmp_path / "cuda.json")
    checks = asked("vjp", "compile").checks()
    assert [verdict.cell for verdict in found.verdicts] == [check.cell for check in checks]
    assert {verdict.status for verdict in found.verdicts} == {Status.HOLDS, Status.NOT_APPLICABLE}
    assert sum(verdict.law == "compile" for verdict in found.verdicts) == 1
    assert (found.provenance["commit"], found.provenance["device"]) == ("abc123", "cpu")
    form, data = read_form(tmp_path / "cuda.json")
    beside = {name: data[name] for name in ("waits", "benchmarks") if name in data}
    assert (form, beside) == (CUDA, {})
    assert summary_text(found, CUDA) == (tmp_path / "cuda.json").read_text(encoding="utf-8")


def test_what_was_measured_is_written_before_the_run_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row is in the file before the next one is measured; and a kill between them leaves it."""
    seen: list[Any] = []
    path = tmp_path / "cuda.json"

    def measured(module: str, device: str, *, seconds: float) -> Any:
        for row in ({"name": "first", "forward": 0, "backward": 0}, {"name": "second", "forward": 1, "backward": 0}):
            seen.append(read_form(path)[1].get("waits", []))
            yield row
        raise KeyboardInterrupt

    monkeypatch.setattr(record, "streamed", measured)
    with pytest.raises(KeyboardInterrupt):
        record.measure(asked("vjp"), tmp_path, parts=("waits",), say=lambda line: None)
    assert [[row["name"] for row in rows] for rows in seen] == [[], ["first"]]
    assert [row["name"] for row in read_form(path)[1]["waits"]] == ["first", "second"]


@pytest.mark.slow
def test_the_verdicts_so_far_are_written_while_the_laws_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "OFTEN", 0.0)
    seen: list[int] = []
    path = tmp_path / "cuda.json"

    def say(line: str) -> None:
        if "laws:" in line:
            seen.append(len(read_summary(path).verdicts))

    record.measure(asked("vjp"), tmp_path, parts=("laws",), jobs=1, say=say)
    assert seen[0] == 1
    assert sorted(seen) == seen
    assert seen[-1] == len(asked("vjp").checks())


@pytest.mark.slow
def test_a_process_that_dies_is_the_verdict_of_its_check_and_the_rest_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "dying.py"
    file.write_text(DYING, encoding="utf-8")
    given, whole = asked("primal", "vjp", target=str(file)), tmp_path / "failures.json"
    record.measure(given, tmp_path, parts=("laws",), jobs=1, failures=whole, say=lambda line: None)
    failed = [(one["law"], one["case"]) for one in json.loads(whole.read_text(encoding="utf-8"))]
    assert failed == [("primal", "three"), ("vjp", "three")]
    found = {(v.law, v.case): v.finding for v in read_summary(tmp_path / "cuda.json").verdicts}
    assert {cell: finding.status for cell, finding in found.items() if "three" not in cell} == dict.fromkeys(
        [(law, case) for law in ("primal", "vjp") for case in ("two", "four")], Status.HOLDS
    )
    assert {finding.message for cell, finding in found.items() if "three" in cell} == {
        "the interpreter died of SIGSEGV"
    }


@pytest.mark.slow
def test_a_check_that_is_late_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "dying.py"
    file.write_text(DYING.replace("os.kill(os.getpid(), signal.SIGSEGV)", "__import__('time').sleep(60)"), "utf-8")
    monkeypatch.setattr(_crew, "LIMIT", 2.0)
    given = asked("primal", target=str(file))
    found: dict[int, Any] = {}
    why = _crew.run(given, given.checks(), jobs=1, threads=1, seconds=60, found=lambda so_far, _: found.update(so_far))
    assert why == ""
    assert [found[number].status for number in sorted(found)] == [Status.HOLDS, Status.NOT_MEASURED, Status.HOLDS]
    assert found[1].finding.details == {LIMIT: "time"}


def test_when_the_time_is_over_it_says_what_was_not_run(tmp_path: Path) -> None:
    record.measure(asked("vjp"), tmp_path, parts=("laws",), jobs=1, seconds=0.0, say=lambda line: None)
    total = len(asked("vjp").checks())
    lacks = f"{total} of {total} checks were not run: the 0 s for the laws were over"
    assert read_summary(tmp_path / "cuda.json").provenance["lacks"] == lacks


@pytest.mark.slow
def test_measuring_needs_neither_sphinx_nor_nox() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('sphinx', 'docutils', 'nox', 'grimp', 'pytest')))\n"
        "from gradspec_lab.cuda import _crew, _worker, benchmarks, record, waits\n"
        "from gradspec_lab.commands import _cuda, _measure\n"
        "print(len(list(waits.measure('cpu'))), *{row.get('error') for row in benchmarks.measure('cpu')})"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["15", "None"]), done.stderr


def test_without_a_device_the_command_says_so_and_writes_nothing(tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a device here")
    done = CliRunner().invoke(main, ["measure", "cuda", "--out", str(tmp_path)])
    assert (done.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert "torch finds no CUDA device" in done.output
