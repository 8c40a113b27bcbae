"""Audit published functions that have no spec, and write the record that a how-to shows.

`nox -s lab -- measure audits` installs their packages into a folder of their own and runs this file.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import runpy
import shlex
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import distributions
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from gradspec._record import provenance, to_text, write
from gradspec_lab.audits.audit_table import AUDITED, Audited

KIND = "audits"
#: What each audit imports; the laws that compile, torch's compiler too.
IMPORTED = ("gradspec._audit._audit", "gradspec._registry._registry", "gradspec.cli._audit", "gradspec.cli._tables")
COMPILER = "torch._dynamo"
#: Where the commands of the record expect the packages.
HOME = Path("build/audits/site-packages")


def command(audited: Audited, site: Path) -> list[str]:
    """Return the command that audits a function installed under a folder."""
    target = audited.target if ".py:" not in audited.target else str(site / audited.target)
    return ["gradspec", "audit", target, "--case", audited.case]


def installed(audited: Audited, site: Path) -> str:
    """Return the version of the package in a folder.

    Raises:
        LookupError: it is not there, or in another version than the table says.
    """
    found = next((d.version for d in distributions(name=audited.package, path=[str(site)])), None)
    if found != audited.version:
        raise LookupError(f"{site} has {audited.package} {found}, and the table says {audited.version}")
    return found


def audited_row(audited: Audited, site: Path) -> dict[str, Any]:
    """Audit one function in a process of its own, and return its row.

    The process is forked from this one, which has imported torch.
    """
    version = installed(audited, site)
    with tempfile.TemporaryDirectory() as folder:
        saved, said = Path(folder) / "report.json", Path(folder) / "said"
        words = [*command(audited, site), "--jobs", "1", "--record", str(saved)]
        run = get_context("fork").Process(target=_run, args=(words, site, said))
        run.start()
        run.join()
        if run.exitcode not in (0, 1) or not saved.exists():
            raise RuntimeError(f"{shlex.join(words)} ended with {run.exitcode}: {said.read_text(encoding='utf-8')}")
        report = json.loads(saved.read_text(encoding="utf-8"))
    kept = ("law", "status", "message", "got", "expected", "likely")
    return {
        "name": audited.name,
        "package": audited.package,
        "version": version,
        "target": audited.target,
        "case": audited.case,
        "command": shlex.join([f"PYTHONPATH={HOME}", *command(audited, HOME)]),
        "verdicts": {verdict["law"]: verdict["status"] for verdict in report["verdicts"]},
        "findings": [
            {key: verdict[key] for key in kept if verdict.get(key)}
            for verdict in report["verdicts"]
            if verdict["status"] in ("broken", "inconclusive", "error")
        ],
    }


def _run(words: list[str], site: Path, said: Path) -> None:
    """Be the process of a command of gradspec that finds a folder's packages first."""
    output = os.open(said, os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.path.insert(0, str(site))
    sys.argv = words
    runpy.run_module(
        "gradspec", run_name="__main__"
    )  # not an import: a row stands on its own laws, not on all there are


def main() -> None:
    """Audit the functions of the table, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--site", type=Path, required=True, help="the folder that pip installed the packages into")
    parser.add_argument("--out", type=Path, required=True, help="where to write the record")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many audits at a time")
    options = parser.parse_args()
    began = time.monotonic()
    for name in (*IMPORTED, COMPILER):
        importlib.import_module(name)
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda audited: audited_row(audited, options.site.resolve()), AUDITED))
    for found in rows:
        counts = dict(sorted(Counter(found["verdicts"].values()).items()))
        print(f"{found['name']} {found['version']}: {counts}", flush=True)
    # The page reads the sources of any audit; what is measured here is of a commit.
    content = {"name": "audits", "provenance": provenance(seed=0), "sources": {}, "audits": rows}
    write(to_text(KIND, content, rows="audits"), options.out)
    print(f"measured in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
