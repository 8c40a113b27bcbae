"""Hold the keys of cells to random edits: a cell whose finding changes must have another key.

`python -m gradspec_lab.campaigns.soundness --changed 100 --out build/soundness.json` edits one definition at a time in
copies of the source, measures a fixed set of cells afresh in each, and goes on until so many edits have changed a
finding.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gradspec_lab.campaigns.random_edits import edits_in

ROOT = Path(__file__).resolve().parents[3]
#: What can decide a verdict, or seems to: edits are drawn from all of it, reached or not.
PARTS = (
    "laws/**/*.py",
    "functions/**/*.py",
    "nn/**/*.py",
    *(f"text/{name}.py" for name in ("_data", "_for_specs", "_grad_mode")),
    "text/_graph/*.py",
    "text/_engine/*.py",
    "text/_scheduling/*.py",
    "text/ops/*.py",
    "spec/*.py",
    *(f"_engine/{name}.py" for name in ("_check", "_plan", "_session", "_child", "_serving", "_parallel", "_pool")),
    *(f"{name}.py" for name in ("law", "_finding", "profile", "_process_state")),
)
#: The sound specimens of the set.
SOUND = ("honest", "noisy")
#: How many cells of a law at the most, by what one check costs.
CELLS = {"ms": 12, "compile": 1, "process": 2}


def cells_of(folder: Path) -> dict[str, Any]:
    """Return the finding and the key of each cell of the set, by its names, from the gradspec that is imported."""
    from gradspec._engine._plan import plan
    from gradspec._engine._reuse import keys_of
    from gradspec._engine._verify import run_plan
    from gradspec.functions import FUNCTIONS
    from gradspec.law import Status
    from gradspec.laws import LAWS
    from gradspec.nn import MODULES
    from gradspec.profile import Profile
    from gradspec.text import TEXTS
    from gradspec_lab.specimens import honest, noisy

    specs = list({spec.name: spec for spec in (*FUNCTIONS, *MODULES, *TEXTS, *honest.HONEST, *noisy.NOISY)}.values())
    profile = Profile(name="soundness", time_limit=120)
    by_law: dict[str, list[Any]] = {}
    for check in plan(specs, LAWS, profile):
        by_law.setdefault(check.law.name, []).append(check)
    chosen = []
    for checks in by_law.values():
        some, rng = sorted(checks, key=lambda check: check.cell), random.Random(checks[0].law.name)
        rng.shuffle(some)
        seen: Counter[str] = Counter()
        spread = sorted(some, key=lambda check: (seen.update([check.spec.name]), seen[check.spec.name])[1])
        chosen += spread[: CELLS[checks[0].law.cost]]
    report = run_plan(chosen, specs, LAWS, profile, jobs=1)
    key = keys_of(report)
    found = {}
    for line in json.loads(report.to_json())["verdicts"]:
        cell, finding = cell_of(line)
        keys = {status.value: key(cell, status) for status in Status}
        found[" | ".join(cell)] = {"finding": finding, "keys": keys}
    return found


def cell_of(line: dict[str, Any]) -> tuple[tuple[str, str, str], dict[str, Any]]:
    """Return the cell of a verdict as a report writes it, and what was found there: all but the command of a rerun."""
    names = ("spec", "law", "case")
    spec, law, case = (line[name] for name in names)
    return (spec, law, case), {key: value for key, value in line.items() if key not in (*names, "rerun")}


def edited(file: Path, rng: random.Random) -> tuple[str, str]:
    """Return a file with one edit of one of its definitions, and what it is; nothing where there is none to make."""
    text = file.read_text(encoding="utf-8")
    edits = edits_in(text)
    if not edits:
        return "", ""
    place = rng.choice(sorted({edit.place for edit in edits}))
    edit = rng.choice([edit for edit in edits if edit.place == place])
    return edit.applied(text), f"{edit.what} in line {edit.line} of {place}"


def measured(folder: Path) -> dict[str, Any] | str:
    """Measure the set in a process that imports the source below a folder; return why it did not run, if it did not."""
    out = folder / "cells.json"
    out.unlink(missing_ok=True)
    environment = os.environ | {
        "PYTHONPATH": str(folder / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
    }
    words = [sys.executable, __file__, "--cells", str(out)]
    try:
        run = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=1500
        )
    except subprocess.TimeoutExpired:
        return "no end within 1,500 s"
    if not out.is_file():
        return run.stderr.strip().splitlines()[-1][:200] if run.stderr.strip() else f"exit code {run.returncode}"
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


def trial(folder: Path, seed: int, normal: dict[str, Any]) -> dict[str, Any]:
    """Make one edit below a folder, measure, take it back, and return what came of it."""
    rng = random.Random(seed)
    files = sorted(f for part in PARTS for f in (folder / "src/gradspec").glob(part) if f.name != "__init__.py")
    files += [folder / f"src/gradspec_lab/specimens/{name}.py" for name in SOUND]
    file = rng.choice(files)
    original = file.read_text(encoding="utf-8")
    text, what = edited(file, rng)
    row: dict[str, Any] = {"seed": seed, "edit": f"{file.relative_to(folder / 'src')}: {what}"}
    if not what:
        return row | {"skipped": "nothing to edit"}
    file.write_text(text, encoding="utf-8")
    try:
        found = measured(folder)
    finally:
        file.write_text(original, encoding="utf-8")
    if isinstance(found, str):
        return row | {"skipped": found}
    changed = {cell for cell in normal if cell not in found or found[cell]["finding"] != normal[cell]["finding"]}
    moved = {cell for cell, was in normal.items() if cell not in found or _key(was, found[cell]) != _key(was, was)}
    return row | {"changed": len(changed), "moved": len(moved), "unsound": sorted(changed - moved)}


def _key(was: dict[str, Any], one: dict[str, Any]) -> str:
    """Return the key by which a verdict that was known would be kept: it depends on what the law said."""
    return str(one["keys"][was["finding"]["status"]])


def trials(options: argparse.Namespace, normal: dict[str, Any], folders: list[Path]) -> Iterator[dict[str, Any]]:
    """Yield trials until enough have changed a finding."""
    changed, seed = 0, options.seed
    with ThreadPoolExecutor(len(folders)) as pool:
        while changed < options.changed:
            batch = [pool.submit(trial, folder, seed + k, normal) for k, folder in enumerate(folders)]
            seed += len(folders)
            for future in batch:
                row = future.result()
                changed += bool(row.get("changed"))
                print(json.dumps(row, ensure_ascii=False), flush=True)
                yield row


def main() -> None:
    """Measure, edit, compare, and write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changed", type=int, default=100, help="how many edits must have changed a finding")
    parser.add_argument("--seed", type=int, default=0, help="of the edits")
    parser.add_argument("--jobs", type=int, default=2, help="how many edits at a time")
    parser.add_argument("--out", type=Path, help="where to write the rows")
    parser.add_argument("--cells", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cells:
        options.cells.write_text(json.dumps(cells_of(Path.cwd())), encoding="utf-8")
        return
    with tempfile.TemporaryDirectory() as base:
        folders = [Path(base) / str(k) for k in range(options.jobs)]
        for folder in folders:
            shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        first, again = measured(folders[0]), measured(folders[0])
        assert isinstance(first, dict), first
        assert isinstance(again, dict), again
        # A finding that differs from one run to the next tells nothing of an edit.
        normal = {cell: one for cell, one in first.items() if one["finding"] == again[cell]["finding"]}
        laws = {cell.split(" | ")[1] for cell in normal}
        print(f"{len(normal)} of {len(first)} cells of {len(laws)} laws", flush=True)
        rows = list(trials(options, normal, folders))
    ran = [row for row in rows if "skipped" not in row]
    summary = {
        "cells": len(normal),
        "laws": len(laws),
        "edits": len(ran),
        "edits that did not run": len(rows) - len(ran),
        "edits that changed a finding": sum(bool(row["changed"]) for row in ran),
        "findings changed": sum(row["changed"] for row in ran),
        "keys moved": sum(row["moved"] for row in ran),
        "findings changed under an unchanged key": sum(len(row["unsound"]) for row in ran),
    }
    print(json.dumps(summary, indent=1))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({"summary": summary, "rows": rows}, indent=1), encoding="utf-8")
    sys.exit(1 if summary["findings changed under an unchanged key"] else 0)


if __name__ == "__main__":
    main()
