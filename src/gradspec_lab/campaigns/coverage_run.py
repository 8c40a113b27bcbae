"""Run each file of tests in a process of its own, under coverage; what it measures bears the name of the file.

    python -m gradspec_lab.campaigns.coverage_run tests/functions tests/nn ...

`nox -s lab -- coverage` runs this. A file whose tests fail is named, and what it has measured counts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from rich.progress import Progress

ROOT = Path(__file__).resolve().parents[3]
#: Exit codes of pytest: all passed, some failed, none was collected.
PASSED, FAILED, NONE = 0, 1, 5


@dataclass(frozen=True)
class Run:
    """What came of a file of tests: its path, pytest's exit code, and what it printed."""

    path: str
    code: int
    said: str


def files_in(tests: Sequence[str]) -> list[str]:
    """Return the files of tests in these folders, the largest first: none of the long ones is left for the end.

    Raises:
        ValueError: a folder has none.
    """
    found: list[Path] = []
    for name in tests:
        path = ROOT / name
        files = [path] if path.is_file() else list(path.rglob("test_*.py"))
        if not files:
            raise ValueError(f"{name} has no file of tests")
        found += files
    return [str(path.relative_to(ROOT)) for path in sorted(set(found), key=lambda p: (-p.stat().st_size, p))]


def run(path: str) -> Run:
    """Run a file of tests under coverage, with its path as the context of each line that it runs."""
    pytest = ("-m", "pytest", "-q", "-p", "in_one_process", "-n", "0", path)
    command = [sys.executable, "-m", "coverage", "run", f"--context={path}", *pytest]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return Run(path, done.returncode, done.stdout + done.stderr)


def main() -> int:
    """Run them all; return 1 where one could not be run at all, else 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="+", help="folders or files, from the root of the repository")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time; one per CPU")
    options = parser.parse_args()
    files = files_in(options.tests)
    lost = 0
    with Progress() as progress, ThreadPoolExecutor(options.jobs) as pool:
        task = progress.add_task("tests", total=len(files))
        for future in as_completed([pool.submit(run, path) for path in files]):
            came = future.result()
            progress.advance(task)
            lost += came.code not in (PASSED, FAILED, NONE)
            last = came.said.strip().splitlines()[-1:] or [f"exit code {came.code}"]
            progress.console.print(f"{came.path}: {last[0].strip('= ')}", markup=False, highlight=False, soft_wrap=True)
            if came.code not in (PASSED, NONE):
                progress.console.print(came.said[-3000:], markup=False, highlight=False, soft_wrap=True)
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main())
