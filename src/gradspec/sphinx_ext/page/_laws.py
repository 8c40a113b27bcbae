"""The section on laws: a row for each law, a column for each device and torch that a record has, a command to copy."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator, Mapping

from docutils import nodes

from gradspec.law import Rank, Status
from gradspec.render._text import Standing
from gradspec.report import Report, judges
from gradspec.sphinx_ext.domain._records import Record, by_family
from gradspec.sphinx_ext.page._fold import folded
from gradspec.sphinx_ext.page._links import law_link
from gradspec.sphinx_ext.page._nodes import Cell, code, paragraph, table
from gradspec.sphinx_ext.page._verdicts import badge, overall, summary
from gradspec.sphinx_ext.page._view import View

#: What needs no look at the table, and fails no run unless it is asked to.
_CALM: tuple[Standing, ...] = (
    Status.HOLDS,
    Status.NOT_MEASURED,
    Status.NOT_APPLICABLE,
    Status.NOT_PROMISED,
    Status.REFUSED_AS_DECLARED,
    Status.WAIVED,
    Rank.WASTE,
    Rank.LIMIT,
)


def laws(view: View) -> Iterator[nodes.Node]:
    """Yield how many laws hold, how to reproduce a verdict, and a row for each law with its verdict in each record.

    The rows are folded if nothing in any of the records is alarming.
    """
    records = _of_spec(view)
    rows: list[list[Cell]] = []
    judging = {name: law for name, law in view.record.report.laws.items() if judges(law, view.kind)}
    judging = {name: law for name, law in judging.items() if view.record.judges(name, view.name)}
    for family, names in by_family(judging).items():
        rows.append([f"{family[:1].upper()}{family[1:]}".replace("_", " ")])
        for name in names:
            statement = nodes.math(judging[name]["statement"], judging[name]["statement"])
            cells = [_verdict(view, record, name) for record in records]
            rows.append([[paragraph(law_link(name)), paragraph(statement)], *cells])
    found = [Counter(_overall(view, record, name) for name in judging) for record in records]
    if rows:
        yield from (_in_short(record, standings) for record, standings in zip(records, found, strict=True))
    if rows and view.sheet["path"]:
        yield paragraph("Reproduce any verdict: put the name of its law behind `--law`.")
        yield code(_command(view, next(iter(judging))), "sh")
    yield from _promises(view.sheet["supports"])
    every = table(["Law", *(where(record.report) for record in records)], rows, "gradspec-laws")
    is_calm = rows and set().union(*found) <= {*_CALM}
    yield folded(f"The verdict of each law ({len(judging)})", every) if is_calm else every


def _promises(supports: Mapping[str, bool | None]) -> Iterator[nodes.Node]:
    """Yield what is declared to be refused, and of what nothing is declared."""
    words = {name.replace("_", " "): promised for name, promised in supports.items()}
    if refused := [name for name, promised in words.items() if promised is False]:
        yield paragraph(f"Refused with an error, as declared: {', '.join(refused)}.")
    if undeclared := [name for name, promised in words.items() if promised is None]:
        found = "Where one of these raises, the verdict is “not promised”."
        yield paragraph(f"Nothing is declared of {', '.join(undeclared)}. {found}")


def _overall(view: View, record: Record, law: str) -> Standing:
    """Return the standing of a law in a record; `not measured` if that is of an older source."""
    is_stale = record.is_stale(view.name, law)
    return Status.NOT_MEASURED if is_stale else overall(record.report.of(spec=view.name, law=law))


def _in_short(record: Record, found: Counter[Standing]) -> nodes.paragraph:
    """Return how many laws have each standing, the most frequent first."""
    parts: list[nodes.Node | str] = [f"{where(record.report)}: "]
    for standing, number in found.most_common():
        parts += [badge(standing), f" {number}", ", "]
    return paragraph(*parts[:-1], ".")


def where(report: Report) -> str:
    """Return the device and the version of torch of a report, as the head of a column."""
    facts = report.provenance
    return f"{facts.get('device', 'unknown device')}, torch {str(facts.get('torch', '?')).partition('+')[0]}"


def _of_spec(view: View) -> list[Record]:
    """Return the record of this page, then every other one that holds its spec."""
    others = (*view.records.build, *view.records.committed)
    return [view.record, *(r for r in others if r is not view.record and view.name in r.report.sheets)]


def _verdict(view: View, record: Record, law: str) -> list[nodes.Node]:
    shown = summary(record.report.of(spec=view.name, law=law), stale=record.is_stale(view.name, law))
    if record is view.record and view.sheet["path"]:
        shown.append(_to_copy(_command(view, law)))
    return shown


def _command(view: View, law: str) -> str:
    return f"gradspec check {view.sheet['path']} --law {law}"


def _to_copy(command: str) -> nodes.raw:
    """Return a button that copies a command; `copy.js` shows it, for it does nothing without a script."""
    said = html.escape(command, quote=True)
    button = f'<button type="button" class="gradspec-copy" data-command="{said}" title="{said}" hidden="hidden">'
    return nodes.raw("", f"<p>{button}Copy command</button></p>", format="html")
