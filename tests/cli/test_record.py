"""`--record`: what it holds is not measured again; what was asked for and is unchanged imports no torch."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from gradspec.law import Finding, Status
from gradspec.report import read_record

WORDS = ("check", "tiny:HONEST", "--record", "record.json", "--law", "vjp", "--law", "primal", "--law", "adjoint")


def process(folder, *words, **how):
    # What is printed meanwhile is counted and cut, so that -X importtime would not tell.
    told = "atexit.register(lambda: sys.stderr.write('| torch\\n' if 'torch' in sys.modules else ''))"
    code = f"import atexit, sys; {told}; from gradspec.cli import main; main(standalone_mode=False)"
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        **how,
    )


def test_what_is_unchanged_is_shown_again_without_torch(gradspec, folder):
    first = gradspec(*WORDS)
    before = (folder / "record.json").read_bytes()
    again = process(folder, *WORDS)

    assert "| torch\n" not in again.stderr
    assert again.stdout == first.stdout
    assert "; 0 measured in " in again.stderr
    assert (folder / "record.json").read_bytes() == before


def test_what_had_no_answer_in_time_is_measured_again(gradspec, folder):
    gradspec(*WORDS)
    measured = read_record(folder / "record.json").verdicts
    hung = Finding(status=Status.NOT_MEASURED, message="no answer within 60 s of CPU time", details={"limit": "time"})
    slow = replace(read_record(folder / "record.json"), verdicts=(replace(measured[0], finding=hung), *measured[1:]))
    (folder / "record.json").write_text(slow.to_json(), encoding="utf-8")
    again = gradspec(*WORDS)

    # With the two that require it: what they say could have hung on it.
    assert "; 3 measured in " in again.stderr
    assert read_record(folder / "record.json").verdicts == measured


@pytest.mark.parametrize(
    "words", [("--fresh",), ("--seed", "1"), ("--law", "layout")], ids=["fresh", "another seed", "another law"]
)
def test_another_request_is_measured(gradspec, folder, words):
    gradspec(*WORDS)
    _, measured = gradspec(*WORDS, *words).stderr.split(" cells are current; ")

    assert not measured.startswith("0 measured")


def test_an_edit_of_the_target_is_measured_and_said(gradspec, folder):
    assert gradspec(*WORDS).stderr.startswith("0 of ")
    text = (folder / "tiny.py").read_text()
    (folder / "tiny.py").write_text(text + "\n\ndef unrelated():\n    return 1\n")
    again = process(folder, *WORDS)

    assert "| torch\n" in again.stderr
    assert "; 0 measured in " in again.stderr, "nothing that it stands on has changed"
    (folder / "tiny.py").write_text(text.replace("make(2, 3), 0.1", "make(2, 4), 0.1"))
    assert "0 of " in process(folder, *WORDS).stderr


def test_a_part_leaves_the_rest_of_the_record(gradspec, folder):
    gradspec(*WORDS)
    before = json.loads((folder / "record.json").read_text())
    result = gradspec("check", "tiny:HONEST", "--record", "record.json", "--law", "vjp")
    after = json.loads((folder / "record.json").read_text())

    assert "; 0 measured in " in result.stderr
    assert after["verdicts"] == before["verdicts"]


SLOW = """
import time
from tiny import HONEST
from dataclasses import replace


def slow(x, *rest):
    with open("calls", "a") as calls:
        calls.write("x")
    time.sleep(0.1)
    return HONEST.function(x, *rest)


SLOW = replace(HONEST, name="slow", function=slow)
"""


def test_an_interrupted_run_keeps_what_it_has_measured(folder):
    (folder / "slow.py").write_text(SLOW)
    words = [sys.executable, "-m", "gradspec", "check", "slow:SLOW", "--record", "record.json", "--jobs", "1"]
    heeded = signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite in the background ignores it
    run = subprocess.Popen(words, cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True)
    signal.signal(signal.SIGINT, heeded)
    calls = folder / "calls"
    while run.poll() is None and not (calls.exists() and len(calls.read_text()) > 30):
        time.sleep(0.1)
    os.kill(run.pid, signal.SIGINT)
    said = run.communicate()[1]
    kept = read_record(folder / "record.json")

    assert run.returncode == 130
    assert f"interrupted: {len(kept.verdicts):,} of " in said
    assert kept.request == {"interrupted": True}
    assert "Traceback" not in said


def test_two_writers_of_parts_lose_nothing(folder):
    words = [sys.executable, "-m", "gradspec", "check", "tiny:HONEST", "--record", "record.json", "--law"]
    both = [subprocess.Popen([*words, law], cwd=folder) for law in ("vjp", "primal")]
    for run in both:
        assert run.wait() == 0

    assert {verdict.law for verdict in read_record(folder / "record.json").verdicts} == {"vjp", "primal"}
