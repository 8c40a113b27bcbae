"""A build looks rarely for cycles of objects, and leaves the process as it was."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gradspec.sphinx_ext._gc_tuning import RARE

if TYPE_CHECKING:
    from pathlib import Path

CONF = """\
import gc

extensions = ["gradspec.sphinx_ext"]


def setup(app):
    app.connect("source-read", lambda *_: print("reading", gc.get_threshold()))
"""
BUILD = """\
import atexit
import gc
from sphinx.application import Sphinx

atexit.register(lambda: print("at the end", gc.get_freeze_count() > 0))  # runs after what is registered later
gc.set_threshold(*{before})
app = Sphinx("{source}", "{source}", "{source}/html", "{source}/html/.doctrees", "html", status=None)
app.build()
print("after", gc.get_threshold())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "reading"),
    [((700, 10, 10), RARE), ((0, 10, 10), (0, 10, 10)), ((10**6, 50, 50), (10**6, 50, 50))],
    ids=["as Python has it", "switched off", "rarer still"],
)
def test_the_thresholds_while_pages_are_read_and_afterwards(
    tmp_path: Path, before: tuple[int, ...], reading: tuple[int, ...]
) -> None:
    (tmp_path / "conf.py").write_text(CONF, encoding="utf-8")
    (tmp_path / "index.rst").write_text("Title\n=====\n", encoding="utf-8")
    script = BUILD.format(before=before, source=tmp_path)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines() == [
        f"reading {reading}",
        f"after {before}",
        f"at the end {before != reading}",
    ]
