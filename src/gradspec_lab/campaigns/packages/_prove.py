"""The proofs of the findings: scripts of ours that show each without gradspec, run where the package is installed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from gradspec_lab.campaigns.packages._environment import python_of, variables
from gradspec_lab.campaigns.packages._run import install
from gradspec_lab.campaigns.packages._summary import PROOFS, classes
from gradspec_lab.campaigns.packages._table import Package

#: How long one proof may take.
SECONDS = 120


def prove(packages: Sequence[Package], build: Path, *, say: Callable[[str], None] = print) -> list[Path]:
    """Run the proofs of some packages, say what each said, and return those that failed."""
    said = classes()
    failed = []
    for package in packages:
        for name in dict.fromkeys(row["proof"] for row in said.values() if row["package"] == package.name):
            proof = PROOFS / name
            python = str(python_of(install(package, build).resolve()))
            done = subprocess.run(
                [python, str(proof)], env=variables(), capture_output=True, text=True, timeout=SECONDS, check=False
            )
            shown = "shown" if done.returncode == 0 else "NOT SHOWN"
            lines = (done.stdout if done.returncode == 0 else done.stdout + done.stderr).splitlines()
            say("\n".join([f"{package.name}, {name}: {shown}", *(f"  {line}" for line in lines)]))
            failed += [proof] if done.returncode else []
    return failed
