"""Measure the packages, one at a time: an environment, the program under the watch, and a file of what was found."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gradspec._clock import tree_of
from gradspec._record import provenance
from gradspec_lab.campaigns.packages._environment import NotInstalledError, make, python_of, variables
from gradspec_lab.campaigns.packages._table import Package

MEASURED, NOT_MEASURED = "measured", "not measured"


def measure(
    packages: Sequence[Package],
    build: Path,
    *,
    fresh: bool = False,
    factor: float = 1.0,
    say: Callable[[str], None] = print,
) -> list[dict[str, Any]]:
    """Measure packages and return what was found of each, in their order.

    What an earlier run measured of the same version with the same program is taken from its file.

    Args:
        packages: which.
        build: the folder of the environments and of a result each.
        fresh: whether to measure what was measured, too.
        factor: of each package's limit of time, for a machine that is slow or busy.
        say: is told a line a package.
    """
    found = []
    for number, package in enumerate(packages, 1):
        left = f"{len(packages) - number} left"
        result = None if fresh else known(package, build)
        if result is None:
            result = measured(package, build, factor)
            _write(_result_file(package, build), result)
            say(f"{package.name} {package.version}: {words(result)}, {left}")
        else:
            say(f"{package.name} {package.version}: known, {words(result)}, {left}")
        found.append(result)
    return found


def known(package: Package, build: Path) -> dict[str, Any] | None:
    """Return what an earlier run measured of this version with this program; None if it did not, or could not."""
    result = kept(package, build)
    return result if result and result["status"] == MEASURED else None


def kept(package: Package, build: Path) -> dict[str, Any] | None:
    """Return the result of an earlier run of this version with this program, also that it was not measured."""
    try:
        result: dict[str, Any] = json.loads(_result_file(package, build).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return result if result.get("key") == package.key else None


def measured(package: Package, build: Path, factor: float = 1.0) -> dict[str, Any]:
    """Return what a program finds of a package; "not measured", and why, if it cannot be installed or run."""
    facts = {"name": package.name, "version": package.version, "domain": package.domain, "key": package.key}
    facts["provenance"] = {key: provenance()[key] for key in ("date", "commit", "gradspec", "torch", "python")}
    home = build / package.name
    try:
        install(package, build)
        seen = _watched(package, home, package.seconds * factor)
    except (NotInstalledError, TimeoutError) as error:
        return {**facts, "status": NOT_MEASURED, "why": str(error), "functions": []}
    if why := seen.pop("why", ""):
        return {**facts, "status": NOT_MEASURED, "why": why, "functions": []}
    return {**facts, "status": MEASURED, "why": "", **seen}


def install(package: Package, build: Path) -> Path:
    """Return the environment of a package, made anew unless it has the same pins.

    Raises:
        NotInstalledError: it cannot be made.
    """
    home = build / package.name
    done, pins = home / "pins.json", list(package.pins)
    if not done.exists() or json.loads(done.read_text(encoding="utf-8")) != pins:
        done.unlink(missing_ok=True)
        make(home / "env", pins)
        _write(done, pins)
    return home / "env"


def _watched(package: Package, home: Path, seconds: float) -> dict[str, Any]:
    """Run the program under the watch.

    Raises:
        TimeoutError: it took too long.
    """
    program, out = home / "program.py", home / "seen.json"
    program.write_text(package.program, encoding="utf-8")
    out.unlink(missing_ok=True)
    python = str(python_of((home / "env").resolve()))
    command = [python, "-m", "gradspec_lab.campaigns.packages.watched", str(out.resolve()), "--"]
    # -P: the folder of the program, which may have the name of what it imports, is not on the path.
    command += [python, "-P", str(program.resolve())]
    with tempfile.TemporaryDirectory(prefix="campaign-") as folder, (home / "said.txt").open("wb") as said:
        run = subprocess.Popen(
            command,
            cwd=folder,
            env={**variables(), "TMPDIR": folder},
            stdout=said,
            stderr=said,
            stdin=subprocess.DEVNULL,
        )
        try:
            code = run.wait(seconds)
        except subprocess.TimeoutExpired:
            _end(run.pid)
            run.wait()
            raise TimeoutError(f"the program and its audits took more than {seconds:.0f} s") from None
    last = _last_line(home / "said.txt")
    if not out.exists():
        return {"why": f"the watch ended with {code}: {last}"}
    seen = json.loads(out.read_text(encoding="utf-8"))
    if seen.pop("code"):
        return {"why": f"the program failed: {last}"}
    return seen


def _end(root: int) -> None:
    """End a process and all that it started: an audit is the leader of a process group of its own."""
    for number in tree_of(root):
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


def _last_line(path: Path) -> str:
    """Return the last error that a process said; the watch says after the program which function it audits."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    said = [line.strip() for line in lines if line.strip() and not line.startswith("gradspec watch:")]
    return next((line for line in reversed(said) if "Error" in line), said[-1] if said else "it said nothing")


def words(result: dict[str, Any]) -> str:
    """Return what was found of a package, in a few words."""
    if result["status"] != MEASURED:
        return f"{result['status']}: {result['why']}"
    rows = result["functions"]
    wrong = sum(row["training"] == "wrong silently" for row in rows)
    asked = sum(row["training"] == "a question" for row in rows)
    return f"{len(rows)} functions, {wrong} wrong in training, {asked} asked about"


def _result_file(package: Package, build: Path) -> Path:
    return build / package.name / "result.json"


def _write(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(data, indent=1), encoding="utf-8")
    part.replace(path)
