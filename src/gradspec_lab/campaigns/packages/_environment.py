"""An environment for one package: its own files, and behind them torch and gradspec of this process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

SRC = Path(__file__).resolve().parents[3]


class NotInstalledError(Exception):
    """A package could not be installed; the text says why."""


def python_of(folder: Path) -> Path:
    """Return the interpreter of an environment."""
    return folder / "bin" / "python"


def make(folder: Path, pins: Sequence[str], *, seconds: int = 300) -> None:
    """Make an environment anew, and install some packages without what they depend on.

    Args:
        folder: where.
        pins: what pip is given.
        seconds: how long pip may take.

    Raises:
        NotInstalledError: pip failed, or took too long.
    """
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=False)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    # Behind the package's own files: what it installs comes first.
    (site / "behind.pth").write_text(f"{SRC}\n{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--target", str(site)]
    try:
        done = subprocess.run([*command, *pins], capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        shutil.rmtree(folder)
        raise NotInstalledError(f"pip had not installed it after {seconds} s") from None
    if done.returncode:
        shutil.rmtree(folder)
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["it gave no reason"]
        raise NotInstalledError(f"pip: {said[-1].removeprefix('ERROR: ')}")


def variables() -> dict[str, str]:
    """Return the variables of a process in such an environment: one thread, and no path of this process."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return {**kept, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
