"""Turn coverage's JSON report into a record: of how many branches of the package the tests take, by room.

    python -m gradspec_lab.campaigns.coverage_record build/coverage.json --tests tests/functions tests/nn ...

`nox -s lab -- coverage` measures and runs this. A room is a package or module directly in `gradspec`.
"""

from __future__ import annotations

import argparse
import json
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradspec._record import RecordError, read_experiment, write_experiment

ROOT = Path(__file__).resolve().parents[3]
OUT = ROOT / "docs" / "records" / "coverage.json"
PACKAGE = "src/gradspec/"


def room_of(path: str) -> str:
    """Return the room of a file of the package; "__init__" of the one that is in none.

    Raises:
        ValueError: the file is not one of the package.
    """
    if not path.startswith(PACKAGE):
        raise ValueError(f"{path} is not in {PACKAGE}: run coverage from the root of the repository")
    return path.removeprefix(PACKAGE).partition("/")[0].removesuffix(".py")


def rooms(report: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return how many branches each room has, and how many of these were taken.

    Raises:
        ValueError: the report is not of branches.
    """
    if not report["meta"]["branch_coverage"]:
        raise ValueError("the report is of lines: set `branch = true` in [tool.coverage.run]")
    taken, all_branches = Counter[str](), Counter[str]()
    for path, file in report["files"].items():
        room, summary = room_of(Path(path).as_posix()), file["summary"]
        taken[room] += summary["covered_branches"]
        all_branches[room] += summary["num_branches"]
    return {room: {"taken": taken[room], "branches": all_branches[room]} for room in sorted(all_branches)}


def total(found: Mapping[str, Mapping[str, int]]) -> dict[str, float]:
    """Return the sum of all rooms, and the share of it.

    Raises:
        ValueError: there is no branch.
    """
    taken, branches = (sum(room[name] for room in found.values()) for name in ("taken", "branches"))
    if not branches:
        raise ValueError("the report has no branch of the package")
    return {"taken": taken, "branches": branches, "share": round(taken / branches, 4)}


def left_out(pyproject: str) -> dict[str, str]:
    """Return what coverage leaves out, and the reason that is a comment on its line.

    Args:
        pyproject: the text of pyproject.toml.

    Raises:
        ValueError: something has no reason.
    """
    said = tomllib.loads(pyproject)["tool"]["coverage"]
    reasons = {}
    for pattern in (*said["run"]["omit"], *said["report"]["exclude_also"]):
        reason = re.search(rf'^\s*"{re.escape(pattern)}",\s*# (.+)$', pyproject, re.MULTILINE)
        if reason is None:
            raise ValueError(f"pyproject.toml does not say why coverage leaves out {pattern!r}: say so on its line")
        reasons[pattern] = reason[1]
    return reasons


def read_coverage(path: Path) -> dict[str, Any]:
    """Return what a record of coverage holds.

    Raises:
        RecordError: it cannot be read, was edited, or its total is not the sum of its rooms.
    """
    record = read_experiment(path)
    if record["total"] != total(record["rooms"]):
        raise RecordError(f"{path}: its total is not the sum of its rooms: nox -s lab -- coverage")
    return record


def main() -> None:
    """Write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path, help="what `coverage json` wrote")
    parser.add_argument("--tests", nargs="+", required=True, help="the tests that ran")
    parser.add_argument("--out", type=Path, default=OUT, help="where to write the record")
    options = parser.parse_args()
    report = json.loads(options.report.read_text(encoding="utf-8"))
    found = rooms(report)
    content = {
        "name": "coverage",
        "what": "how many branches of the package the tests below `tests` take, the laws on our own specs and on "
        "the specimens, and the build of the site",
        "tests": options.tests,
        "total": total(found),
        "rooms": found,
        "left out": left_out((ROOT / "pyproject.toml").read_text(encoding="utf-8")),
    }
    write_experiment(content, options.out, command="nox -s lab -- coverage", coverage=report["meta"]["version"])
    print(f"{content['total']['taken']:,} of {content['total']['branches']:,} branches: {options.out}")


if __name__ == "__main__":
    main()
