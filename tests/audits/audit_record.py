"""Audit published functions that have no spec, and write what was found.

`python tests/audits/audit_record.py --site build/audits/site-packages --out docs/records/audits.json`
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import tempfile
from collections import Counter
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from audit_table import AUDITED, Audited

from gradspec._seal import sealed

#: The form of the record. It moves when a reader of the old form would misread the new one.
SCHEMA = 1
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


def audited_row(audited: Audited, site: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Audit one function in a process of its own; return its row and the provenance of the report."""
    version = installed(audited, site)
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "report.json"
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}
        words = [*command(audited, site), "--record", str(saved)]
        run = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        if run.returncode not in (0, 1):
            raise RuntimeError(f"{shlex.join(words)} ended with {run.returncode}: {run.stderr}")
        report = json.loads(saved.read_text(encoding="utf-8"))
    kept = ("law", "status", "message", "got", "expected", "likely")
    return {
        "name": audited.name,
        "package": audited.package,
        "version": version,
        "target": audited.target,
        "case": audited.case,
        "command": shlex.join([f"PYTHONPATH={HOME}", *command(audited, HOME)]),
        "statuses": dict(sorted(Counter(v["status"] for v in report["verdicts"]).items())),
        "findings": [
            {key: verdict[key] for key in kept if verdict.get(key)}
            for verdict in report["verdicts"]
            if verdict["status"] in ("broken", "inconclusive", "error")
        ],
    }, report["provenance"]


def main() -> None:
    """Audit the functions of the table, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--site", type=Path, required=True, help="the folder that pip installed the packages into")
    parser.add_argument("--out", type=Path, required=True, help="where to write the record")
    parser.add_argument("--only", help="only the functions of this package")
    options = parser.parse_args()
    rows, provenance = [], {}
    for audited in AUDITED:
        if options.only in (None, audited.package):
            row, provenance = audited_row(audited, options.site.resolve())
            rows.append(row)
            print(f"{row['name']} {row['version']}: {row['statuses']}", flush=True)
    kept = ("date", "commit", "gradspec", "torch", "python", "platform", "device", "seed", "profile")
    record = {
        "schema": SCHEMA,
        "name": "audits",
        "provenance": {key: provenance[key] for key in kept if key in provenance},
        "audits": rows,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(sealed(record), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()
