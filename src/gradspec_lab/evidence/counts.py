"""Count the committed records when a page is built: no total is typed or committed."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from gradspec._record import RecordError, read_experiment
from gradspec_lab._summary import read_summary
from gradspec_lab.audits.gallery import TRUTH, gallery
from gradspec_lab.selftest._record import read_matrix

ROOT = Path(__file__).resolve().parents[3]
RECORDS = ROOT / "docs" / "records"
STRANGERS = ROOT / "tests" / "strangers"


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RecordError(f"{path} cannot be read ({type(error).__name__}: {error})") from None


def kills() -> dict[str, Any]:
    """Count the functions that are broken on purpose, and those that some law says `broken` of."""
    matrix = read_matrix(RECORDS / "kill_matrix.json")
    mutants = matrix.of("mutant")
    killed = sum(bool(subject.killed_by) for subject in mutants)
    return {
        "honest": len(matrix.of("honest")),
        "honest_killed": sum(bool(subject.killed_by) for subject in matrix.of("honest")),
        "diseased": len(matrix.of("diseased")),
        "diseased_killed": sum(bool(subject.killed_by) for subject in matrix.of("diseased")),
        "mutants": len(mutants),
        "mutants_killed": killed,
        "mutants_left": len(mutants) - killed,
        "laws": len(matrix.laws),
        "date": matrix.provenance["date"][:10],
    }


def seeds() -> dict[str, Any]:
    """Count the runs of known-good functions with other seeds."""
    record = _json(RECORDS / "seeds.json")
    swept = record["swept"]
    return {
        "run": swept["run"],
        "specs": len(swept["specs"]),
        "cases": swept["cases"],
        "verdicts": swept["verdicts"],
        "failures": len(swept["failures"]),
        "date": record["provenance"]["date"][:10],
    }


def published() -> dict[str, Any]:
    """Count the published functions that were looked at, and what was found in them."""
    audits, shown = _json(RECORDS / "audits.json"), gallery(read_experiment(TRUTH))["functions"]
    peers = read_summary(RECORDS / "peers.json")
    return {
        "audits": len(audits["audits"]),
        "audit_findings": sum(len(row["findings"]) for row in audits["audits"]),
        "gallery": len(shown),
        "gallery_packages": len({row["package"] for row in shown}),
        "peers": len(peers.sheets),
        "peer_cells": len(peers.verdicts),
        "peer_verdicts": dict(sorted(Counter(verdict.status.value for verdict in peers.verdicts).items())),
    }


def strangers() -> dict[str, Any]:
    """Count the functions of other authors, and those of them that the laws accuse."""
    now, operators_now = (strangers_rows(STRANGERS / path) for path in ("record.json", "operators/record.json"))
    first = {  # as they were said, in no form of records
        name: _json(STRANGERS / f"{name}-first-run.json")["rows"] for name in ("second", "third", "fourth", "fifth")
    }
    return {
        "now": _noticed(now),
        **{f"{name}_first": _noticed(rows) for name, rows in first.items()},
        "operators_first": _operators(_json(STRANGERS / "operators" / "first-run.json")["rows"]),
        "operators_now": _operators(operators_now),
    }


def strangers_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a record of what the laws say of strangers' functions.

    Raises:
        RecordError: it cannot be read, was edited, or a row does not hold as many findings as it says.
    """
    rows: list[dict[str, Any]] = read_experiment(path)["rows"]
    for row in rows:
        if "laws" in row and row["findings"] != len(row["laws"]):
            raise RecordError(f"{path}: {row['file']} has {len(row['laws'])} findings, and says {row['findings']}")
    return rows


def _operators(rows: list[dict[str, Any]]) -> dict[str, int]:
    sound, broken = ([row for row in rows if (row["defect"] is None) is is_sound] for is_sound in (True, False))
    return {
        "sound": len(sound),
        "sound_accused": sum(_accused(row) for row in sound),
        "broken": len(broken),
        "broken_noticed": sum(bool(row["findings"]) for row in broken),
        "broken_accused": sum(_accused(row) for row in broken),
    }


def _accused(row: dict[str, Any]) -> bool:
    # The first run has the ranks by their names, and the record as a reader is told them.
    return any(found["rank"].startswith(("wrong", "refused")) for found in row["findings"])


def _noticed(rows: list[dict[str, Any]]) -> dict[str, int]:
    sound, broken = ([row for row in rows if row["sound"] is is_sound] for is_sound in (True, False))
    wrong, nothing = (": wrong silently", ": refused with an error"), ": shows nothing"
    return {
        "sound": len(sound),
        "sound_accused": sum(_says(row, wrong) for row in sound),
        "broken": len(broken),
        "broken_noticed": sum(_says(row, wrong) for row in broken),
        "broken_said_to_show_nothing": sum(not _says(row, wrong) and _says(row, nothing) for row in broken),
    }


def _says(row: dict[str, Any], ends: str | tuple[str, ...]) -> bool:
    return any(law.endswith(ends) for law in row["laws"])


@cache
def counted() -> dict[str, Any]:
    """Return all counts, and the versions and devices of the records they are of."""
    found: set[tuple[str, ...]] = set()
    for path in sorted(RECORDS.rglob("*.json")):
        noted = _json(path).get("provenance", {})
        found.add(tuple(noted.get(name, "") for name in ("torch", "python", "platform", "device")))
    names = ("torch", "python", "platform", "device")
    seen = {name: sorted({row[place] for row in found} - {""}) for place, name in enumerate(names)}
    return {
        "records": len(list(RECORDS.rglob("*.json"))),
        **{name: ", ".join(values) for name, values in seen.items()},
        "kills": kills(),
        "seeds": seeds(),
        "published": published(),
        "strangers": strangers(),
    }
