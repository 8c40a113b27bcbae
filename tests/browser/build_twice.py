"""Build the site twice from one record, in two folders and under two hash seeds: both must be the same, byte for byte.

`python tests/browser/build_twice.py FOLDER` leaves the two sites in `FOLDER/first` and `FOLDER/second`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

#: What Sphinx keeps for itself, and no server sends.
PRIVATE = (".doctrees", ".buildinfo")


def build(out: Path, *, seed: int) -> None:
    """Build the site from nothing, in a process whose sets and strings are hashed by a seed."""
    command = ["sphinx-build", "-q", "-E", "-n", "-W", "-c", "conf", "-d", f"{out}.doctrees", "docs", str(out)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": str(seed)})


def differences(first: Path, second: Path) -> list[str]:
    """Return the files that are in one folder alone, or not the same in both."""
    left, right = files(first), files(second)
    alone = [f"only in one of the builds: {name}" for name in sorted(left.keys() ^ right.keys())]
    both = sorted(left.keys() & right.keys())
    return alone + [_first_difference(name, left[name], right[name]) for name in both if left[name] != right[name]]


def files(folder: Path) -> dict[str, bytes]:
    """Return what a server would send, by path."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    named = ((path.relative_to(folder), path) for path in paths)
    return {name.as_posix(): path.read_bytes() for name, path in named if name.parts[0] not in PRIVATE}


def _first_difference(name: str, left: bytes, right: bytes) -> str:
    at = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    return f"{name}: at byte {at}: {left[max(at - 60, 0) : at + 60]!r} and {right[max(at - 60, 0) : at + 60]!r}"


def main() -> int:
    """Build, compare, print what differs."""
    folder = Path(sys.argv[1])
    first, second = folder / "first", folder / "second"
    build(first, seed=0)
    build(second, seed=1)
    found = differences(first, second)
    print(*found, f"{len(files(first))} files, {len(found) or 'none'} of them different", sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
