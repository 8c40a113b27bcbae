"""A command searches what it has made for cycles no more before it ends, unless nanobind would take that for a leak."""

import subprocess
import sys

import pytest

SCRIPT = """
import atexit
import gc

from gradspec.cli import main


class Meta(type):  # each class that nanobind makes has such a one
    __module__ = "{metaclass}"


class Attribute(metaclass=Meta):
    pass


atexit.register(lambda: print(gc.get_freeze_count() > 0, gc.isenabled()))  # runs after what is registered later
main(["list"])
"""


@pytest.mark.parametrize(
    ("metaclass", "frozen_enabled"), [("users", "True True"), ("nanobind", "False False")], ids=["usual", "nanobind"]
)
def test_how_a_command_ends(metaclass, frozen_enabled):
    script = SCRIPT.format(metaclass=metaclass)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=100)

    assert done.stdout.splitlines()[-1] == frozen_enabled
