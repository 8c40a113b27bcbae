"""Measure one version of torch: verdicts, specimens, transforms and tests, as a record.

`nox -s lab -- torch-2.14` runs it in an environment with that version.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import torch

from gradspec import verify
from gradspec.law import Status
from gradspec.report import write_experiment
from gradspec_lab.selftest._run import selftest
from gradspec_lab.versions.transforms import measured as transforms

ROOT = Path(__file__).parents[3]
#: The tests that touch torch.
TESTS = ("tests/functions", "tests/laws", "tests/nn", "tests/engine", "tests/pages/test_transforms.py")
#: What says that all is as promised, or that nothing was to be asked.
AS_PROMISED = (Status.HOLDS, Status.NOT_APPLICABLE, Status.REFUSED_AS_DECLARED, Status.NOT_PROMISED, Status.WAIVED)


def verdicts(jobs: int) -> dict[str, Any]:
    """Return how many verdicts of each status our specs get, and a row for each law that is not as promised."""
    from gradspec.functions import FUNCTIONS
    from gradspec.nn import MODULES
    from gradspec.operators import OPERATORS
    from gradspec.text import TEXTS

    report = verify([*FUNCTIONS, *OPERATORS, *MODULES, *TEXTS], jobs=jobs)
    counts = Counter(str(verdict.status.value) for verdict in report.verdicts)
    odd = [v for v in report.verdicts if v.status not in AS_PROMISED and v.status is not Status.NOT_MEASURED]
    odd.sort(key=lambda v: (v.spec, v.law))
    rows = []
    for (spec, law), group in groupby(odd, key=lambda v: (v.spec, v.law)):
        first, *others = group
        said = {"status": first.status.value, "message": first.finding.message[:200]}
        rows.append({"spec": spec, "law": law, "cases": 1 + len(others), **said})
    return {"counts": dict(sorted(counts.items())), "otherwise": rows}


def specimens(jobs: int) -> dict[str, Any]:
    """Return how many sound functions a law rejects, and how many broken ones are noticed by their own."""
    matrix = selftest(mutated=False, jobs=jobs)
    sound, sick = matrix.of("honest"), [s for s in matrix.of("diseased") if not s.not_measured]
    return {
        "sound": len(sound),
        "rejected": [f"{s.name}: {s.fault}" for s in sound if s.fault],
        "diseased": len(sick),
        # One that is noticed in the words of another version counts as noticed.
        "missed": [f"{s.name}: {s.fault}" for s in sick if s.fault and set(s.own) - set(s.killed_by)],
    }


def tests(jobs: int) -> dict[str, Any]:
    """Run tests; return how many passed, and the names of those that did not."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "junit.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-n", str(jobs), "--junitxml", str(out), *TESTS]
        subprocess.run(command, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False, capture_output=True)
        cases = list(ElementTree.parse(out).iter("testcase"))
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    skipped = [case for case in cases if case.find("skipped") is not None]
    return {
        "passed": len(cases) - len(failed) - len(skipped),
        "skipped": len(skipped),
        "failed": sorted(f"{case.get('classname')}::{case.get('name')}" for case in failed),
    }


def main() -> None:
    """Measure, print what was found, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="where to write the record")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes")
    parser.add_argument("--without", action="append", default=[], metavar="PART", help="leave out: tests, say")
    options = parser.parse_args()
    torch.set_num_threads(1)
    content: dict[str, Any] = {
        "name": f"torch {torch.__version__}",
        "what": "verdicts, specimens, transforms and tests under one version of torch",
    }
    parts = {
        "verdicts": lambda: verdicts(options.jobs),
        "specimens": lambda: specimens(options.jobs),
        "transforms": transforms,
        "tests": lambda: tests(options.jobs),
    }
    for name, measure in parts.items():
        if name in options.without:
            continue
        content[name] = measure()
        print(f"{name}: {content[name]}", flush=True)
    left_out = "".join(f" --without {part}" for part in options.without)
    command = f"nox -s {options.out.stem}" + (f" --{left_out}" if left_out else "")
    write_experiment(content, options.out, command=command)


if __name__ == "__main__":
    main()
