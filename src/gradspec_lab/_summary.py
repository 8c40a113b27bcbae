"""The committed summary of a run that a build does not repeat: each cell's verdict, each text once.

It is made of the published implementations, and of our own specs on a CUDA device.

The cells of a law are runs of cases, `0-26:1,27:4`: the cases 0 to 26 say what `said` has at 1, the case 27 at 4. So a
page can show each of them, and what most of them say, `holds`, takes no room. Messages are cut as a page cuts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from gradspec._record import RecordError, read, to_text
from gradspec._registry._declared import declared_laws
from gradspec.law import Finding, Status, Verdict
from gradspec.render import brief_message
from gradspec.report import Report, kind_of_sheet


@dataclass(frozen=True, kw_only=True)
class Form:
    """What tells a summary from another."""

    #: The kind of its record.
    kind: str
    #: The key of its rows, a spec each.
    rows: str
    #: The command that measures it.
    command: str

    @property
    def again(self) -> str:
        """How it is made again, for a message."""
        return f"measure it again with `{self.command}`"


PEERS = Form(kind="peers", rows="peers", command="nox -s lab -- measure peers")
CUDA = Form(kind="cuda", rows="specs", command="python -m gradspec_lab measure cuda")
FORMS = {form.kind: form for form in (PEERS, CUDA)}


def summary_text(report: Report, form: Form = PEERS, **beside: Any) -> str:
    """Return the summary of a report as JSON, a line for each spec.

    Args:
        report: what was measured.
        form: of what it is.
        beside: plain data that is measured beside the laws, by its key.
    """
    said: dict[tuple[str, ...], int] = {}
    rows = [_row(name, report, said) for name in report.sheets]
    content = {"provenance": dict(report.provenance), "said": [" | ".join(one) for one in said], form.rows: rows}
    return to_text(form.kind, {**content, **beside}, rows=form.rows)


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
    return _report(*read_form(path), path)


def read_form(path: Path) -> tuple[Form, dict[str, Any]]:
    """Return of what a summary is, and all that it holds.

    Raises:
        RecordError: as `read_summary`.
    """
    data = read(path, *FORMS, again=PEERS.again)
    return FORMS[data["kind"]], data


def _report(form: Form, data: Mapping[str, Any], path: Path) -> Report:
    try:
        findings = [_finding(one) for one in data["said"]]
        verdicts = [verdict for row in data[form.rows] for verdict in _verdicts(row, findings, form)]
        return Report(
            provenance=data["provenance"],
            sheets={row["name"]: {"kind": row["kind"]} for row in data[form.rows]},
            laws={law.name: law.sheet for law in declared_laws()},
            sources={},
            verdicts=tuple(verdicts),
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(f"{path} is no summary ({type(error).__name__}: {error}): {form.again}") from None


def _finding(said: str) -> Finding:
    status, *rest = said.split(" | ", 3)
    rank, follows, message = (*rest, "", "", "")[:3]
    return Finding(status=Status(status), message=message, rank=rank, follows=follows)


def _verdicts(row: Mapping[str, Any], findings: Sequence[Finding], form: Form) -> Iterator[Verdict]:
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
                    rerun=form.command,
                )
