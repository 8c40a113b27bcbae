"""Run a program as `gradspec watch` does, and write what was seen and found as plain data.

    python -m gradspec_lab.campaigns.packages.watched FOUND.json -- python program.py

It runs in the environment of the package.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gradspec._watch._row import Row
from gradspec.cli import _watch
from gradspec.findings import Judged, rank_words, scope_of
from gradspec.law import Rank, Scope
from gradspec.render._text import line, question

#: How much of a finding's words is kept.
WORDS = 400


def row_of(row: Row) -> dict[str, Any]:
    """Return what is kept of a function: what it is, how it was called, and every finding."""
    findings = () if row.judgement is None else row.judgement.findings
    said = [_finding(one, row) for one in sorted(findings, key=lambda one: one not in row.asked)]
    return {
        "function": row.key,
        "line": int(number) if (number := row.where.rpartition(":")[2]).isdigit() else 0,
        "package": row.package,
        "calls": row.forwards,
        "backwards": row.backwards,
        "uses": list(row.uses),
        "kinds": list(row.kinds),
        "training": _training(row, said),
        "findings": said,
        "why": " ".join(row.why.split()),
    }


def _training(row: Row, said: Sequence[dict[str, Any]]) -> str:
    """Return what is said of training: "not audited", the rank of what is asked and wrong, "question", or "holds"."""
    if row.judgement is None:
        return "not audited"
    ranks = [one["rank"] for one in said if one["scope"] == Scope.TRAINING]
    order = [rank_words(rank) for rank in (Rank.WRONG, Rank.REFUSED)]
    for rank in (*order, "could not be judged", "a limit ran out", "a question", "shows nothing", "cannot tell"):
        if rank in ranks:
            return rank
    return "nothing found"


def _finding(one: Judged, row: Row) -> dict[str, Any]:
    found, finding = one.found, one.found.verdict.finding
    numbers = {name: shown for name in ("got", "expected", "index") if (shown := str(getattr(finding, name)))}
    return {
        "scope": scope_of(found.verdict.law, row.report.laws).value,
        "rank": rank_words(found.rank),
        "fails": one.fails,
        "laws": found.laws,
        "case": found.verdict.case,
        "says": without_paths(question(found) if one.is_question else line(found))[:WORDS],
        **numbers,
        **({"likely": without_paths(finding.likely)[:WORDS]} if finding.likely and not one.is_question else {}),
    }


def without_paths(text: str) -> str:
    """Return a text on one line, with only the last two parts of each path of this machine."""
    return re.sub(r"(?<![\w.])/(?:[\w.+-]+/)+([\w.+-]+/[\w.+-]+)", r"\1", " ".join(text.split()))


def main() -> None:
    """Run the program that the arguments are, and write what was found."""
    out, dashes, *command = sys.argv[1:]
    if dashes != "--" or not command:
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory(prefix="gradspec-watch-") as scratch:
        code = _watch._run(tuple(command), Path(scratch), (), (), 0)
        program = _watch._seen(Path(scratch), (), ())
    found = {
        "code": code,
        "troubles": [without_paths(trouble) for trouble in program.troubles],
        "functions": [row_of(row) for row in program.rows],
    }
    Path(out).write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
