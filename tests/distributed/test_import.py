"""Whoever shards nothing imports nothing of what sharding stands on: it takes half a second."""

from __future__ import annotations

import subprocess
import sys


def test_no_module_of_dtensor_is_imported_with_the_functions_and_the_modules() -> None:
    asked = "import sys, torch; before = set(sys.modules); import gradspec.nn; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert "gradspec.nn._memory_bank._shard" in done.stdout
    assert "torch.distributed" not in done.stdout
