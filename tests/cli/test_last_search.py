"""A command does not search what it has made for cycles once more before it ends."""

import subprocess
import sys

SCRIPT = """
import atexit
import gc

from gradspec.cli import main

atexit.register(lambda: print("frozen", gc.get_freeze_count() > 0))  # runs after what is registered later
main(["list"])
"""


def test_what_a_command_leaves_is_frozen_at_its_end():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=100)

    assert done.stdout.splitlines()[-1] == "frozen True"
