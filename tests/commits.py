"""What a check of one change asks git: a name of the commit to draw by, and the files that it changes."""

from __future__ import annotations

import subprocess
from pathlib import Path


def changed(root: Path, since: str | None = None) -> list[str]:
    """Return the files that changed since a commit, or since the one before; none where the clone has only one.

    Raises:
        ValueError: `since` is no commit of the repository.
    """
    try:
        return git(root, "diff", "--name-only", since or "HEAD~1").splitlines()
    except ValueError:
        if since:
            raise
        return []


def git(root: Path, *words: str) -> str:
    """Return what a command prints.

    Raises:
        ValueError: it fails.
    """
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()
