"""Where, when and on what versions a measurement was made; nothing here imports torch."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gradspec._record._bytes import short
from gradspec._record._packages import versions

#: What must agree for a measurement to replace another one, beside its key.
ENVIRONMENT = ("torch", "numpy", "sympy", "python", "platform", "device")


def provenance(*, device: str = "cpu", folder: Path | None = None, **facts: Any) -> dict[str, Any]:
    """Return where, when and on what versions a measurement is made.

    Args:
        device: what it runs on, as a reader knows it: `cpu`, or the name of a GPU.
        folder: the working tree whose commit is noted; default: the working directory.
        facts: what else is to be noted: `seed`, `profile`, `threads`.
    """
    return {"date": now(), "commit": commit(folder or Path.cwd()), **environment(device), **facts}


def environment(device: str = "cpu") -> dict[str, Any]:
    """Return the versions and the machine of this process."""
    return {
        **{name: version(name) for name in ("gradspec", "torch", "numpy", "sympy")},
        "python": platform.python_version(),
        "dependencies": short("\n".join(versions())),
        "platform": f"{sys.platform} {platform.machine()}",
        "device": device,
    }


def same_environment(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two measurements were made on the same versions and the same kind of machine."""
    return all(one.get(name) == other.get(name) for name in ENVIRONMENT)


def version(distribution: str) -> str:
    """Return the version of an installed distribution; empty if it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def now() -> str:
    """Return the time, in UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def commit(folder: Path) -> str:
    """Return the commit of a working tree, "+" behind it if something has changed since; "" outside git.

    A JSON file that has changed does not count: a record is not what it was measured of.
    """
    try:
        answers = [
            subprocess.run(["git", *words], capture_output=True, text=True, check=True, cwd=folder).stdout.strip()
            for words in (
                ("rev-parse", "--short=12", "HEAD"),
                ("status", "--porcelain", "--untracked-files=no", "--", ":(top)", ":(top,exclude)*.json"),
            )
        ]
    except (OSError, subprocess.CalledProcessError):
        return ""
    return answers[0] + ("+" if answers[1] else "")
