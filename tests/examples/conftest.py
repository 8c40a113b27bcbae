"""The scripts of docs/examples: run as a user runs them, and imported to look inside."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from forked import server

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
#: What the scripts import.
IMPORTED = ("click", "gradspec.functions", "gradspec.nn", "gradspec.text.lm", "sklearn.datasets", "torch")


@pytest.fixture
def run() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs a script with arguments, from the root of the repository.

    `path` goes before all that can be imported; `cold` starts a Python for it, as a user does; it is forked otherwise.
    """

    def run(
        script: str, *arguments: object, path: Path | None = None, cold: bool = False
    ) -> subprocess.CompletedProcess[str]:
        parts = [*([str(path)] if path else []), *filter(None, [os.environ.get("PYTHONPATH")])]
        words = [f"docs/examples/{script}", *map(str, arguments)]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(parts), "NO_COLOR": "1", "COLUMNS": "100"}
        if path or cold:
            command = [sys.executable, *words]
            return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=env)
        return server(*IMPORTED).run(words, cwd=ROOT, env=env, timeout=600)

    return run


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Return a function that imports a script, or a module beside it."""
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module
