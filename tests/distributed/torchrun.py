"""A script as torchrun runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: A thread of gloo lets go of a tensor while the interpreter ends, and aborts: pytorch pull request 179291. The script
#: is over by then.
ABORTED = "terminate called without an active exception"


def torchrun(ranks: int, *words: object) -> str:
    """Return what a script prints, run by so many ranks from the root of the repository."""
    options = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    command = [sys.executable, *options, *map(str, words)]
    for _ in range(3):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode == 0 or ABORTED not in done.stderr:
            break
    assert done.returncode == 0, done.stderr
    return done.stdout
