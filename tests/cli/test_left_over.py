"""What a function does to its process, and what it starts, ends with the run; and what was sound stays sound."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from forked import python
from gradspec._engine._child import available

pytestmark = pytest.mark.skipif(not available(), reason="no fork on this machine")

HEAD = """
import multiprocessing, os, subprocess, time
import torch
from gradspec import Case, FunctionSpec

def cases(make):
    yield Case(name="matrix", args=(make(2, 3),))

def spec(function, *, name="it", primal=lambda x: x.exp(), cases=cases):
    return FunctionSpec(name=name, function=function, primal=primal, surrogate=primal, wrt=("x",), cases=cases)

def exp(x):
    return x.exp()
"""


def run(folder, text, *words):
    (folder / "theirs.py").write_text(HEAD + text)
    return python("-m", "gradspec", "check", "theirs.py", *words, timeout=100)


def is_alive(number):
    # The children of a container may have no parent that takes note of their end.
    status = Path(f"/proc/{number}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def ends_soon(number):
    end = time.monotonic() + 20
    while is_alive(number) and time.monotonic() < end:
        time.sleep(0.05)
    return not is_alive(number)


@pytest.mark.slow
def test_that_what_torch_wraps_itself_is_no_patch(folder):
    # Alone: no other law has imported the compiler, which wraps torch.manual_seed.
    (folder / "theirs.py").write_text(HEAD + "A = spec(lambda x: x.exp(), primal=exp)")
    command = [sys.executable, "-m", "gradspec", "check", "theirs.py", "--law", "global_state"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)

    assert (done.returncode, done.stderr) == (0, "")
    assert "global_state   ✓ holds 1" in done.stdout


@pytest.mark.slow
def test_that_a_closed_stderr_says_nothing_about_a_function(folder):
    (folder / "theirs.py").write_text(HEAD + "A = spec(lambda x: x.exp(), primal=exp)")
    command = f"'{sys.executable}' -m gradspec check theirs.py --law primal --law vjp 2>&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=100)

    assert done.returncode == 0
    assert "2 laws hold" in done.stdout


STARTS = """
def function(x):
    with open("pids", "a") as file:
        print(subprocess.Popen(["sleep", "600"]).pid, file=file)
    {then}
    return x.exp()
A = spec(function, primal=exp)
"""


@pytest.mark.slow
@pytest.mark.parametrize("then", ["pass", "os._exit(7)", "while True: time.sleep(1)"])
def test_that_what_a_function_starts_ends_with_it(folder, then):
    done = run(folder, STARTS.format(then=then), "--law", "primal", "--time-limit", "2")

    assert (done.returncode == 2) == ("while" in then)
    started = [int(line) for line in (folder / "pids").read_text().split()]
    assert started
    assert all(map(ends_soon, started))
    assert ("ended the interpreter, with exit code 7" in done.stdout) == ("exit" in then)
    assert ("no answer, and asleep for more than 2 s" in done.stdout) == ("while" in then)


@pytest.mark.slow
def test_that_a_run_that_is_terminated_leaves_no_child(folder):
    text = "def function(x):\n    open('pid', 'w').write(str(os.getpid()))\n    time.sleep(600)\nA = spec(function)"
    (folder / "theirs.py").write_text(HEAD + text)
    command = [sys.executable, "-m", "gradspec", "check", "theirs.py", "--law", "primal"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 60
        while not ((folder / "pid").exists() and (folder / "pid").read_text()) and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "interrupted: the run was not finished" in said
    assert ends_soon(int((folder / "pid").read_text()))


DISTURBED = """
def sets(make):
    torch.set_default_dtype(torch.float64)
    yield Case(name="matrix", args=(make(2, 3),))

def narrow(x):
    return x.exp() if torch.get_default_dtype() == torch.float64 else 2 * x.exp()

A = spec(exp, name="sets", primal=exp, cases=sets)
B = spec(narrow, name="narrow", primal=exp)
"""


@pytest.mark.slow
def test_that_the_cases_of_one_spec_do_not_hide_what_the_next_one_breaks(folder):
    done = run(folder, DISTURBED, "--law", "primal")

    assert done.returncode == 1
    assert "narrow breaks `primal`" in done.stdout


@pytest.mark.slow
def test_that_an_interrupt_that_a_function_raises_is_its_own(folder):
    done = run(folder, "def function(x):\n    raise KeyboardInterrupt\nA = spec(function)", "--law", "primal")

    assert done.returncode == 1
    assert "raised KeyboardInterrupt" in done.stdout


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("A = spec(lambda x: (x, None), primal=lambda x: (x, None))", "output 1 of the surrogate is a NoneType"),
        (
            "def bare(make):\n    yield Case(name='bare', args=make(1, 3))\nA = spec(exp, cases=bare)",
            "case 'bare': args is a Tensor, expected a tuple: write args=(x,) for one argument",
        ),
        pytest.param(
            "def numbered(make):\n    yield Case(name=3, args=(make(3),))\nA = spec(exp, cases=numbered)",
            "the name of a case is 3, expected text",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_that_what_no_law_can_judge_is_a_fault_of_the_spec(folder, text, says):
    done = run(folder, text, "--law", "vjp")

    assert done.returncode == 2
    assert says in done.stdout
    assert "it breaks" not in done.stdout


@pytest.mark.slow
def test_that_a_daemon_verifies_in_its_own_process(folder):
    (folder / "theirs.py").write_text(
        HEAD + "A = spec(lambda x: x.exp(), primal=exp)\n"
        "def work(_):\n    from gradspec import verify\n    return len(verify([A]).failures)\n"
    )
    script = "import multiprocessing, theirs\nprint(multiprocessing.get_context('fork').Pool(1).map(theirs.work, [0]))"
    done = python("-c", script, timeout=300)

    assert done.stdout == "[0]\n", done.stderr
