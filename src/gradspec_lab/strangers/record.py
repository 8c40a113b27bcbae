"""Hold the functions of tests/strangers to the laws, and note what was said first of each.

`first-run.json` there is what the laws said before anything was changed for them; their author promises eager training
alone, which a spec could not say then.

python -m gradspec_lab.strangers.record --out tests/strangers/record.json
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from gradspec import Case, audit, verify
from gradspec.findings import findings, rank_words
from gradspec.law import Status
from gradspec.profile import load_profile
from gradspec.report import write_experiment
from gradspec_lab.strangers.stranger_specs import STRANGERS, load, promised, spec_of

#: As their authors wrote them, in the order in which they came.
FOLDERS = ("functions", "flat", "second", "third", "fourth", "fifth")
HEAD = {
    "name": "strangers",
    "what": "what the laws say of functions whose authors had not seen them: the first finding, and which there are",
}


def row(path: Path) -> dict[str, Any]:
    """Return what the laws say of one file: the first finding, and how many there are of each sort."""
    truth = load(path).TRUTH
    told = {"file": str(path.relative_to(STRANGERS)), "sound": truth["sound"], "truth": truth["defect"]}
    profile, remarks = load_profile("every-case"), ()
    try:
        spec = spec_of(path, supports=promised(path))
        if spec is None:  # noise is drawn within: there is no primal, and an audit needs none
            file = load(path)
            called = file.module() if hasattr(file, "module") else file.function
            calls = [Case(name=f"call {n}", args=tuple(a), kwargs=k) for n, (a, k) in enumerate(file.calls())]
            audited = audit(called, calls, name=path.stem, profile=profile)
            report, remarks = audited.report, audited.remarks
        else:
            report = verify([spec], profile=profile)
    except Exception as error:
        return told | {"refused": f"{type(error).__name__}: {error}"[:300]}
    found = findings(report)
    laws = [f"{f.verdict.law}: {rank_words(f.rank)}" for f in found]
    first = found[0].verdict if found else None
    return told | {
        "findings": len(laws),
        "laws": laws,
        "first": "" if first is None else f"{first.law}: {first.finding.message} {first.finding.argument}".strip(),
        "likely": "" if first is None else first.finding.likely,
        **({} if spec is not None else {"remarks": list(remarks)}),
        "vacuous": [v.law for v in report.verdicts if v.status == "vacuous"],
        "errors": [v.finding.message for v in report.verdicts if v.status is Status.ERROR][:2],
    }


def timed(path: Path) -> tuple[float, dict[str, Any]]:
    """Return the row of a file, and how many seconds it took."""
    begin = time.monotonic()
    told = row(path)
    return time.monotonic() - begin, told


def main() -> None:
    """Write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--folder", action="append", choices=FOLDERS, help="a folder of tests/strangers; all of them")
    parser.add_argument("--only", default="", help="the files whose names hold this")
    parser.add_argument("--jobs", type=int, default=1, help="how many files are judged at a time")
    options = parser.parse_args()
    paths = [path for folder in options.folder or FOLDERS for path in sorted((STRANGERS / folder).glob("*.py"))]
    paths = [path for path in paths if path.stem != "check_truths"]
    paths = [path for path in paths if options.only in path.stem]
    rows = []
    with ProcessPoolExecutor(options.jobs, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        for seconds, told in pool.map(timed, paths):
            rows.append(told)
            print(f"{seconds:5.1f} s  {json.dumps(told)[:300]}", flush=True)
    write_experiment({**HEAD, "rows": rows}, options.out, seed=0, profile="quick")


if __name__ == "__main__":
    main()
