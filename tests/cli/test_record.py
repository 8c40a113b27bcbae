"""`--record`: what it holds is not measured again, and what it holds of others stays."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from forked import python
from gradspec.law import Finding, Status
from gradspec.report import read_record, read_records

WORDS = ("check", "tiny:HONEST", "--record", "record.json", "--law", "vjp", "--law", "primal", "--law", "adjoint")


def test_what_is_unchanged_is_shown_again(gradspec, folder):
    first = gradspec(*WORDS)
    before = read_record(folder / "record.json").verdicts
    again = gradspec(*WORDS)

    assert again.stdout == first.stdout
    assert "; 0 measured in " in again.stderr
    assert read_record(folder / "record.json").verdicts == before


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


def test_an_edit_of_a_file_that_the_target_imports_is_measured(gradspec, folder):
    (folder / "helping.py").write_text("FACTOR = 1\n")
    text = (folder / "tiny.py").read_text()
    (folder / "tiny.py").write_text(f"import helping\n{text}")
    words = ("-m", "gradspec", *WORDS)
    assert "0 of " in python(*words).stderr
    assert "; 0 measured in " in python(*words).stderr
    (folder / "helping.py").write_text("FACTOR = 2\n")
    assert "0 of " in python(*words).stderr


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


@pytest.mark.slow
def test_an_interrupted_run_keeps_what_it_has_measured(folder):
    (folder / "slow.py").write_text(SLOW)
    words = [sys.executable, "-m", "gradspec", "check", "slow:SLOW", "--record", "record.json", "--jobs", "1"]
    words += ["--law", "primal", "--law", "vjp", "--law", "adjoint", "--law", "second_order"]  # none compiles
    heeded = signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite in the background ignores it
    run = subprocess.Popen(words, cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True)
    signal.signal(signal.SIGINT, heeded)
    calls = folder / "calls"
    while run.poll() is None and not (calls.exists() and len(calls.read_text()) > 5):
        time.sleep(0.1)
    os.kill(run.pid, signal.SIGINT)
    said = run.communicate()[1]
    kept = read_record(folder / "record.json")

    assert run.returncode == 130
    assert f"interrupted: {len(kept.verdicts):,} of " in said
    assert len(kept.missing) + len(kept.verdicts) == int(said.split(" of ")[1].split()[0].replace(",", ""))
    assert "Traceback" not in said


@pytest.mark.slow
def test_two_writers_of_parts_lose_nothing(folder):
    words = [sys.executable, "-m", "gradspec", "check", "tiny:HONEST", "--record", "record.json", "--law"]
    both = [subprocess.Popen([*words, law], cwd=folder) for law in ("vjp", "primal")]
    for run in both:
        assert run.wait() == 0

    assert {verdict.law for verdict in read_record(folder / "record.json").verdicts} == {"vjp", "primal"}


def cells(path):
    return [
        {(v.spec, v.law, report.provenance["seed"]): str(v.status) for v in report.verdicts}
        for report in read_records(path)
    ]


def test_a_second_spec_a_law_and_a_seed_stay_beside_what_is_there(gradspec, folder):
    gradspec("check", "tiny:HONEST", "--law", "vjp", "--law", "primal", "--record", "r.json")
    (before,) = cells(folder / "r.json")
    gradspec("check", "tiny:DISEASED", "--law", "vjp", "--record", "r.json")
    gradspec("check", "tiny:HONEST", "--fresh", "--law", "primal", "--record", "r.json")
    gradspec("check", "tiny:DISEASED", "--seed", "1", "--law", "primal", "--record", "r.json")
    first, second = cells(folder / "r.json")

    assert before.items() <= first.items()
    assert ("ignores_factor", "vjp", 0) in first
    assert {(spec, law) for spec, law, _ in second} == {("ignores_factor", "primal")}
    assert gradspec("show", "r.json").exit_code == 1


def test_prune_drops_what_is_not_asked_for(gradspec, folder):
    gradspec("check", "tiny", "--law", "vjp", "--record", "r.json")
    gradspec("check", "tiny:HONEST", "--law", "vjp", "--record", "r.json", "--prune")
    (left,) = cells(folder / "r.json")

    assert {spec for spec, _, _ in left} == {"honest"}


@pytest.mark.parametrize("shard", ["1/2", "9/9"], ids=["a part", "an empty one"])
def test_the_record_of_a_shard_is_incomplete(gradspec, shard):
    assert gradspec("check", "tiny:HONEST", "--law", "vjp", "--record", "r.json", "--shard", shard).exit_code == 0
    shown = gradspec("show", "r.json")

    assert shown.exit_code == 1
    assert "r.json: incomplete: " in shown.stderr
    assert "r.json: incomplete: " in gradspec("check", "tiny:HONEST", "--law", "vjp", "--baseline", "r.json").stderr
    gradspec("check", "tiny:HONEST", "--law", "vjp", "--record", "r.json")
    assert gradspec("show", "r.json").exit_code == 0


@pytest.mark.parametrize("harm", [lambda text: text[:100], lambda text: text.replace("vjp", "jvp")])
def test_a_record_that_cannot_be_read_is_kept_beside_the_new_one(gradspec, folder, harm):
    gradspec(*WORDS)
    text = harm((folder / "record.json").read_text())
    (folder / "record.json").write_text(text)
    again = gradspec(*WORDS)

    assert "; measured again, and it is kept as record.json.unreadable\n" in again.stderr
    assert (folder / "record.json.unreadable").read_text() == text
    assert gradspec("show", "record.json").stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    ["gradspec check tiny:HONEST --record pipe --law vjp", "pytest --gradspec tiny:HONEST --gradspec-record pipe"],
    ids=["command", "pytest"],
)
def test_a_pipe_takes_the_record_and_stays(folder, words):
    os.mkfifo(folder / "pipe")
    reader = ["timeout", "100", "cat", "pipe"]  # it waits for a writer, and there is none where a file took its place
    with (folder / "read.json").open("wb") as file, subprocess.Popen(reader, stdout=file, cwd=folder):
        python("-m", *words.split(), cwd=folder)

    assert (folder / "pipe").is_fifo()
    assert "vjp" in {verdict.law for verdict in read_record(folder / "read.json").verdicts}


@pytest.mark.parametrize("option", ["--record", "--html"])
@pytest.mark.parametrize("command", ["check", "audit"])
def test_a_pipe_that_nobody_reads_is_refused_before_anything_runs(folder, command, option):
    (folder / "marked.py").write_text("from tiny import HONEST, Scale\nopen('ran', 'w').close()\n")
    os.mkfifo(folder / "pipe")
    target = {"check": ("marked:HONEST",), "audit": ("marked:Scale", "--case", "(randn(3), 0.5)")}[command]
    result = python("-m", "gradspec", command, *target, "--law", "layout", option, "pipe", timeout=60)

    line = f"Error: {option} pipe is a pipe that nobody reads, or a socket: give the path of a file\n"
    assert (result.returncode, result.stdout, result.stderr) == (2, "", line)
    assert not (folder / "ran").exists()


def test_pytest_refuses_a_pipe_that_nobody_reads(folder):
    os.mkfifo(folder / "pipe")
    words = ("--gradspec", "tiny:HONEST", "--gradspec-law", "layout", "--gradspec-record", "pipe")
    result = python("-m", "pytest", "-p", "no:cacheprovider", *words, timeout=60)

    assert result.returncode == 4
    assert "gradspec: the record pipe cannot be written (No such device or address): give the path of a file" in (
        result.stderr
    )
    assert "Traceback" not in result.stderr


TWO = """
import torch
from torch.autograd import Function

from gradspec import Case, FunctionSpec


class Squared(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return (3 if len(x) == 3 else 2) * x * grad


def square(x):
    return x * x


def cases(make):
    for size in (3, 4):
        yield Case(name=str(size), args=(make(size),))


ODD = FunctionSpec(name="odd", function=Squared.apply, primal=square, wrt=("x",), cases=cases)
EVEN = FunctionSpec(name="even", function=square, primal=square, wrt=("x",), cases=cases)
"""


@pytest.fixture
def two(folder):
    (folder / "two.py").write_text(TWO)
    return folder


def test_a_check_of_one_case_leaves_those_of_the_others(gradspec, two):
    words = ("check", "two:ODD", "--law", "vjp", "--record", "r.json")
    codes = [gradspec(*words, *more).exit_code for more in ((), ("--case", "4"), ("--fresh", "--case", "4"))]

    assert codes == [1, 0, 0]
    assert {(v.case, v.status) for v in read_record(two / "r.json").of(law="vjp")} == {("3", "broken"), ("4", "holds")}
    assert gradspec("show", "r.json").exit_code == 1


def test_an_audit_of_another_call_leaves_that_of_the_first(gradspec, two):
    words = ("audit", "two:Squared", "--reference", "two:square", "--law", "vjp", "--record", "r.json", "--case")
    codes = [gradspec(*words, call).exit_code for call in ("(randn(3),)", "(randn(4),)")]

    assert codes == [1, 0]
    assert gradspec("show", "r.json").exit_code == 1


def test_a_scope_of_one_run_is_not_that_of_the_record(gradspec, two):
    odd, even = (("check", f"two:{name}", "--law", "vjp", "--record") for name in ("ODD", "EVEN"))
    first = gradspec(*odd, "r.json").exit_code
    scoped = gradspec(*even, "r.json", "--scope", "compile").exit_code
    codes = [gradspec(*words).exit_code for words in (("show", "r.json"), (*odd, "r.json"), (*even, "r.json"))]

    assert (first, scoped, codes) == (1, 0, [1, 1, 0])


@pytest.mark.parametrize("turned", [False, True])
def test_the_order_of_a_merge_decides_nothing(gradspec, two, turned):
    gradspec("check", "two:ODD", "--law", "vjp", "--record", "a.json")
    gradspec("check", "two:EVEN", "--law", "vjp", "--scope", "compile", "--record", "b.json")
    parts = ["a.json", "b.json"]
    merged = gradspec("merge", *(reversed(parts) if turned else parts), "--record", "both.json")

    assert (merged.exit_code, gradspec("show", "both.json").exit_code) == (0, 1)
