"""The specs of functions of packages, each with a wrong variant, checked where the package is installed."""

from __future__ import annotations

import ast
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradspec._record import RecordError, provenance, to_text, write
from gradspec.findings import judge
from gradspec.law import Scope
from gradspec.laws import LAWS
from gradspec.report import read_record
from gradspec_lab.campaigns.packages._environment import python_of, variables
from gradspec_lab.campaigns.packages._run import install
from gradspec_lab.campaigns.packages._specs_read import KIND, read_specs
from gradspec_lab.campaigns.packages._table import Package
from gradspec_lab.campaigns.packages.watched import without_paths

#: Of each kind of function a folder; a file begins with the name of its package.
SPECS = Path(__file__).parent / "specs"
#: The variable of a spec that holds; WRONG is that of its variant.
RIGHT = "RIGHT"
#: How long the checks of one file may take.
SECONDS = 1800


def specs(packages: Sequence[Package]) -> dict[Path, Package]:
    """Return the files of specs of some packages, each with what is installed for it and its text as the program."""
    named = {one.name: one for one in packages}
    return {
        path: replace(package, domain=path.parent.name, program=path.read_text(encoding="utf-8"))
        for path in sorted(SPECS.glob("*/*.py"))
        if (package := named.get(path.name.partition("_")[0]))
    }


def lines(text: str) -> int:
    """Return how many lines of code a spec has up to RIGHT, without imports and the docstring."""
    count = 0
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            continue
        shown = text.splitlines()[node.lineno - 1 : node.end_lineno]
        count += sum(bool(line.strip()) and not line.lstrip().startswith("#") for line in shown)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == RIGHT:
            return count
    raise ValueError(f"the spec assigns nothing to {RIGHT}")


def measure(
    packages: Sequence[Package], build: Path, out: Path, *, fresh: bool = False, say: Callable[[str], None] = print
) -> None:
    """Check the specs of some packages, and write a row for each into the summary as soon as it is known.

    A row of the same pins and the same file is kept, unless `fresh`.
    """
    try:
        rows = {row["spec"]: row for row in read_specs(out)["specs"]}
    except RecordError:
        rows = {}
    for path, package in specs(packages).items():
        name = path.relative_to(SPECS).as_posix()
        if not fresh and rows.get(name, {}).get("key") == package.key:
            continue
        rows[name] = {"spec": name, "key": package.key, **_row(path, package, build)}
        rows = {one: rows[one] for one in sorted(rows) if (SPECS / one).exists()}
        facts = {key: provenance()[key] for key in ("date", "commit", "gradspec", "torch", "python", "platform")}
        write(to_text(KIND, {"provenance": facts, "specs": list(rows.values())}, rows="specs"), out)
        say(f"{name}: {rows[name]['right']['says']}; {rows[name]['wrong']['says']}")


def _row(path: Path, package: Package, build: Path) -> dict[str, Any]:
    python = python_of(install(package, build).resolve())
    facts = {"package": package.name, "version": package.version, "lines": lines(package.program)}
    return {**facts, **{variant.lower(): found for variant, found in checked(python, path).items()}}


def checked(python: Path, path: Path) -> dict[str, dict[str, Any]]:
    """Check the specs of a file, and return of each variable its name, whether it fails, and what is found first.

    The laws are those of training that need neither a compiler nor a process of their own.
    """
    with tempfile.TemporaryDirectory(prefix="campaign-") as folder:
        record = Path(folder, "report.json")
        command = [str(python), "-m", "gradspec", "check", str(path), "--format", f"json={record}"]
        command += [
            word for law in LAWS if law.cost == "ms" and law.scope is Scope.TRAINING for word in ("--law", law.name)
        ]
        done = subprocess.run(
            command, cwd=folder, env=variables(), capture_output=True, text=True, timeout=SECONDS, check=False
        )
        if done.returncode not in (0, 1):
            raise RuntimeError(f"{path}: {done.stdout}{done.stderr}")
        report = read_record(record)
    found = {}
    for name, sheet in report.sheets.items():
        failing = [one.found for one in judge(report).findings if one.fails and one.found.verdict.spec == name]
        first = failing[0].verdict.finding if failing else None
        says = without_paths(first.likely or first.message) if first else "nothing is wrong"
        laws = list(failing[0].laws) if failing else []
        variable = sheet["path"].rpartition(":")[2]
        found[variable] = {"name": name, "fails": bool(failing), "laws": laws, "says": says}
    return found
