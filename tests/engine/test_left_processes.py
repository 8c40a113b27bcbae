"""What a function starts ends with its check: in sessions of their own, too."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from gradspec import audit
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
@pytest.mark.parametrize("start", [in_a_session, forked_twice])
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
