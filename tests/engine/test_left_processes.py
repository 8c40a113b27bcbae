"""What a function starts, or leaves in its process, ends with its check."""

import math
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from gradspec import FunctionSpec, audit, verify
from gradspec.law import Status
from gradspec.laws import LAWS

PRIMAL = [law for law in LAWS if law.name in ("inference", "layout")]


def sleeper(mark):
    return [sys.executable, "-c", f"import time; time.sleep(300)  # {mark}"]


def in_a_session(mark):
    subprocess.Popen(sleeper(mark), start_new_session=True)


def forked_twice(mark):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(sys.executable, sleeper(mark))
        os._exit(0)
    os.wait()


def alive(mark):
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                found += [int(path.name)] if mark.encode() in (path / "cmdline").read_bytes() else []
            except OSError:
                continue
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are found in /proc")
@pytest.mark.parametrize("start", [in_a_session, pytest.param(forked_twice, marks=pytest.mark.slow)])
def test_a_process_in_a_session_of_its_own_ends_with_the_check(start):
    mark = f"left-{os.getpid()}-{start.__name__}"

    def starts(x):
        start(mark)
        return 2 * x

    audit(starts, [(torch.ones(3),)], laws=PRIMAL)
    until = time.monotonic() + 20
    while alive(mark) and time.monotonic() < until:
        time.sleep(0.05)

    assert alive(mark) == []


def leaves_another_tau(x):
    math.tau = 1.0
    return 2 * x


def of_tau(x):
    return math.tau * x


def test_what_a_function_leaves_in_its_process_is_nothing_of_the_next_one():
    right = math.tau
    how = {"wrt": ("x",), "cases": [(torch.tensor([1.0, 2.0, -3.0]),)]}
    first = FunctionSpec(name="leaves", function=leaves_another_tau, primal=lambda x: 2 * x, **how)
    second = FunctionSpec(name="of tau", function=of_tau, primal=lambda x: right * x, **how)
    report = verify([first, second], [law for law in LAWS if law.name == "primal"], jobs=1, isolate=True)

    assert {(v.spec, v.status) for v in report.verdicts} == {("leaves", Status.HOLDS), ("of tau", Status.HOLDS)}
