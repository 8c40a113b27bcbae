"""An output that cannot be written is one line and exit code 2."""

import subprocess
import sys
from pathlib import Path

import pytest

from forked import python

FULL = Path("/dev/full")


pytestmark = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this machine")


def test_a_full_disk_behind_stdout():
    with FULL.open("w") as full:
        command = [sys.executable, "-m", "gradspec", "--help"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=100)

    assert done.returncode == 2
    assert done.stderr == "Error: the output cannot be written (No space left on device)\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", [pytest.param("list", marks=pytest.mark.slow), "check gradspec.text:text_add --law arity"]
)
def test_a_full_disk_behind_the_stdout_of_a_command(line):
    done = python("-m", "gradspec", *line.split(), stdout=FULL)

    assert done.returncode == 2
    assert done.stderr == "Error: the output cannot be written (No space left on device)\n"
