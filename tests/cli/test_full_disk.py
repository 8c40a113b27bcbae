"""An output that cannot be written is one line and exit code 2."""

import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this machine")
@pytest.mark.parametrize("line", ["--help", "list", "check gradspec.text:text_add --law arity"])
def test_a_full_disk_behind_stdout(line):
    with FULL.open("w") as full:
        command = [sys.executable, "-m", "gradspec", *line.split()]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=100)

    assert done.returncode == 2
    assert done.stderr == "Error: the output cannot be written (No space left on device)\n"
