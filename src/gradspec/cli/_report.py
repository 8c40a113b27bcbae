"""A report on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from gradspec.cli._say import say
from gradspec.cli._screen import NO_LIMIT, console, put
from gradspec.cli._tables import table_of
from gradspec.law import Rank, Status
from gradspec.render import reason, specs_by_kind, words
from gradspec.render._plain import ending, finding_blocks
from gradspec.render._table import counted, law_rows, tables

if TYPE_CHECKING:
    from gradspec.findings import Judgement
    from gradspec.report import Report

_STYLES: dict[Status | Rank, str] = {
    Status.ERROR: "bold red",
    Status.BROKEN: "bold red",
    Status.INCONCLUSIVE: "bold yellow",
    Status.VACUOUS: "bold yellow",
    Status.QUESTION: "yellow",
    Rank.WASTE: "yellow",
    Rank.LIMIT: "yellow",
    Status.NOT_MEASURED: "yellow",
    Status.WAIVED: "yellow",
    Status.REFUSED_AS_DECLARED: "cyan",
    Status.NOT_PROMISED: "dim",
    Status.HOLDS: "green",
    Status.NOT_APPLICABLE: "dim",
}

#: What a reader of a short table does not look for.
_QUIET = (Status.HOLDS, Status.NOT_APPLICABLE)


def print_report(judgement: Judgement, *, verbose: bool, provenance: bool = False, brief: bool = False) -> None:
    """Print the table of specs and laws, every finding that no baseline has, and a line for each spec.

    If `brief`, the table leaves out what holds and what is not applicable, and a line says how many laws that are.
    """
    screen, whole = console(), judgement.report
    report = _without_what_holds(whole) if brief else whole
    if screen.is_terminal:
        _draw_tables(screen, report)
    else:
        for table in tables(report, signs=not screen.options.ascii_only):
            say(table)
    report = whole
    if brief and (left_out := _left_out(whole)):
        say(f"{left_out}: --verbose lists them\n")
    if verbose:
        for verdict in report.verdicts:
            if (verdict.finding.message or "would show" in verdict.finding.details) and not verdict.finding.is_told:
                say(f"{verdict.spec} · {verdict.law} · {verdict.case}: {reason(verdict)}")
        say()
    recorded = f"recorded: {_flat(report.provenance)}" if provenance else ""
    for said in (*finding_blocks(judgement, details=verbose, style=_styled), *ending(judgement, recorded=recorded)):
        say(said)


def _draw_tables(screen: Console, report: Report) -> None:
    """Put the tables on a terminal, in colour and no wider than it is."""
    for specs in specs_by_kind(report):
        # A row a line if that fits.
        between = ", " if _width(screen, _verdicts(screen, report, specs, ", ")) <= screen.width else "\n"
        for columns in _columns_that_fit(screen, report, specs, between):
            put(screen, _verdicts(screen, report, columns, between))


def _styled(text: str, what: str) -> str:
    return click.style(text, underline=True) if what == "heading" else click.style(text, bold=True)


def _without_what_holds(report: Report) -> Report:
    rows = {verdict.law for verdict in report.verdicts if verdict.status not in _QUIET}
    return replace(report, verdicts=tuple(verdict for verdict in report.verdicts if verdict.law in rows))


def _left_out(report: Report) -> str:
    """Return how many laws a brief table leaves out: "28 laws hold, 2 not applicable"."""
    shown = {verdict.law for verdict in _without_what_holds(report).verdicts}
    held = {v.law for v in report.verdicts if v.status is Status.HOLDS} - shown
    rest = {v.law for v in report.verdicts} - held - shown
    parts = [f"{len(held)} law{'s hold' if len(held) != 1 else ' holds'}"] if held else []
    return ", ".join([*parts, *([f"{len(rest)} not applicable"] if rest else [])])


def print_differences(reports: Sequence[Report]) -> None:
    """Print a row for each cell in which the reports of several environments differ."""
    from gradspec._engine._merge import differing, labels

    differ = differing(reports)
    count = "1 cell differs" if len(differ) == 1 else f"{len(differ)} cells differ"
    say(f"{len(reports)} environments, {count}")
    table = table_of("spec", "law", "case", *labels(reports))
    for cell, statuses in differ.items():
        said = (Text(words(status), _STYLES[status]) if status else Text("-") for status in statuses)
        table.add_row(*map(Text, cell), *said)
    if differ:
        put(console(), table)


def _columns_that_fit(screen: Console, report: Report, names: list[str], between: str) -> Iterator[list[str]]:
    """Yield the specs in groups whose tables fit the screen."""
    group: list[str] = []
    for name in names:
        if group and _width(screen, _verdicts(screen, report, [*group, name], between)) > screen.width:
            yield group
            group = []
        group.append(name)
    if group:
        yield group


def _width(screen: Console, table: Table) -> int:
    return Measurement.get(screen, screen.options.update_width(NO_LIMIT), table).maximum


def _verdicts(screen: Console, report: Report, names: list[str], between: str) -> Table:
    table = table_of("law", *names)
    for law, numbers in law_rows(report, names):
        table.add_row(Text(law), *(_cell(screen, number, between) for number in numbers))
    return table


def _cell(screen: Console, number: Mapping[Status | Rank, int], between: str) -> Text:
    signs = not screen.options.ascii_only
    parts = [Text(counted(*one, signs=signs), _STYLES[one[0]]) for one in number.items()]
    return Text(between).join(parts)


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_flat(item)}" for key, item in value.items() if item not in (None, "", {}))
    return str(value)
