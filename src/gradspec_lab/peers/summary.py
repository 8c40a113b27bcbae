"""What is committed of the published implementations: which cell says what, each thing that is said once.

The cells of a law are runs of cases, `0-26:1,27:4`: the cases 0 to 26 say what `said` has at 1, the case 27 at 4. So a
page can show each of them, and what most of them say, `holds`, takes no room. Messages are cut as a page cuts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from gradspec._record import RecordError, read, to_text
from gradspec._registry._declared import declared_laws
from gradspec.law import Finding, Status, Verdict
from gradspec.report import Report, kind_of_sheet
from gradspec.sphinx_ext.page._verdicts import brief_message

KIND = "peers"
AGAIN = "measure it again with `nox -s lab -- measure peers`"
#: Where a page finds what `read_summary` returns, as any other report.
EXPANDED = "peers.json"


def summary_text(report: Report) -> str:
    """Return the summary of a report as JSON, a line for each published implementation."""
    said: dict[tuple[str, ...], int] = {}
    rows = [_row(name, report, said) for name in report.sheets]
    content = {"provenance": dict(report.provenance), "said": [" | ".join(one) for one in said], "peers": rows}
    return to_text(KIND, content, rows="peers")


def _row(name: str, report: Report, said: dict[tuple[str, ...], int]) -> dict[str, Any]:
    verdicts = report.of(spec=name)
    cases = list(dict.fromkeys(verdict.case for verdict in verdicts))
    cells = {
        law: ",".join(_runs([(cases.index(v.case), said.setdefault(_said(v), len(said))) for v in found]))
        for law in report.laws
        if (found := report.of(spec=name, law=law))
    }
    return {"name": name, "kind": kind_of_sheet(report.sheets[name]), "cases": cases, "cells": cells}


def _said(verdict: Verdict) -> tuple[str, ...]:
    found = verdict.finding
    if not (found.status.is_failure or found.message):
        return (found.status.value,)
    # The message comes last: it may have any character.
    return found.status.value, found.rank or "", found.follows or "", brief_message(found.message)


def _runs(cells: Sequence[tuple[int, int]]) -> Iterator[str]:
    for (_, number), group in groupby(enumerate(cells), key=lambda one: (one[1][0] - one[0], one[1][1])):
        places = [place for _, (place, _) in group]
        span = str(places[0]) if len(places) == 1 else f"{places[0]}-{places[-1]}"
        yield f"{span}:{number}"


def read_summary(path: Path) -> Report:
    """Return the report that a summary is of, with what it keeps of each finding and the laws as they are today.

    Raises:
        RecordError: the file cannot be read, was edited, or does not hold a summary.
    """
    data = read(path, KIND, again=AGAIN)
    try:
        findings = [_finding(one) for one in data["said"]]
        verdicts = [verdict for row in data["peers"] for verdict in _verdicts(row, findings)]
        return Report(
            provenance=data["provenance"],
            sheets={row["name"]: {"kind": row["kind"]} for row in data["peers"]},
            laws={law.name: law.sheet for law in declared_laws()},
            sources={},
            verdicts=tuple(verdicts),
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(f"{path} is no summary ({type(error).__name__}: {error}): {AGAIN}") from None


def _finding(said: str) -> Finding:
    status, *rest = said.split(" | ", 3)
    rank, follows, message = (*rest, "", "", "")[:3]
    return Finding(status=Status(status), message=message, rank=rank, follows=follows)  # type: ignore[arg-type]


def _verdicts(row: Mapping[str, Any], findings: Sequence[Finding]) -> Iterator[Verdict]:
    for law, runs in row["cells"].items():
        for run in runs.split(","):
            span, _, number = run.partition(":")
            first, _, last = span.partition("-")
            for place in range(int(first), int(last or first) + 1):
                yield Verdict(
                    spec=row["name"],
                    law=law,
                    case=row["cases"][place],
                    finding=findings[int(number)],
                    rerun="nox -s lab -- measure peers",
                )
