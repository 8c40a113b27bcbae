"""Reports, specs and laws on a terminal: rich tables, and the same tables without colour in a pipe."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from gradspec.findings import use_of
from gradspec.law import Law, Status
from gradspec.render import (
    SIGNS,
    baseline_lines,
    counts,
    finding_text,
    reason,
    specs_by_kind,
    summary_lines,
    words,
)

if TYPE_CHECKING:
    from gradspec._registry._declared import Declared
    from gradspec.findings import Judgement
    from gradspec.report import Report
    from gradspec.selftest._record import Matrix
    from gradspec.spec import Spec

#: Wide enough for any table: a pipe has no width, and a name that is cut cannot be searched for.
_NO_LIMIT = 10_000

_STYLES = {
    Status.ERROR: "bold red",
    Status.BROKEN: "bold red",
    Status.INCONCLUSIVE: "bold yellow",
    Status.VACUOUS: "bold yellow",
    Status.NOT_MEASURED: "yellow",
    Status.WAIVED: "yellow",
    Status.REFUSED_AS_DECLARED: "cyan",
    Status.NOT_PROMISED: "dim",
    Status.HOLDS: "green",
    Status.NOT_APPLICABLE: "dim",
}


def console() -> Console:
    """Return the console of stdout: as wide as the terminal, or without limit in a pipe."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=_NO_LIMIT)


@contextlib.contextmanager
def progress() -> Iterator[Callable[[int, int, str], None] | None]:
    """Give a function that moves a progress bar on stderr, or None where stderr is not a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    screen = Console(stderr=True)
    if not screen.is_terminal:
        yield None
        return
    columns = (BarColumn(bar_width=30), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, label: bar.update(task, completed=done, total=total, description=label)


def put(screen: Console, table: Table) -> None:
    """Print a table without the blanks that rich pads its lines with in a pipe."""
    if screen.is_terminal:
        screen.print(table)
        return
    with screen.capture() as captured:
        screen.print(table)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def print_report(judgement: Judgement, *, verbose: bool, provenance: bool = False) -> None:
    """Print the table of specs and laws, every finding that no baseline has, and a line for each spec."""
    screen, report = console(), judgement.report
    for specs in specs_by_kind(report):
        # A row a line where that fits, as it always does in a pipe.
        between = ", " if _width(screen, _verdicts(screen, report, specs, ", ")) <= screen.width else "\n"
        for columns in _columns_that_fit(screen, report, specs, between):
            put(screen, _verdicts(screen, report, columns, between))
    if verbose:
        for verdict in report.verdicts:
            if verdict.finding.message and not verdict.status.is_failure:
                click.echo(f"{verdict.spec} · {verdict.law} · {verdict.case}: {reason(verdict)}")
        click.echo()
    last = ""
    for found in (judged.found for judged in judgement.findings if not judged.is_known):
        use = use_of(found.verdict.law, report.laws)
        if use != last:
            click.echo(click.style(f"{use[:1].upper()}{use[1:]}\n", underline=True))
        last = use
        headline, _, rest = finding_text(found, details=verbose).partition("\n")
        click.echo(f"{click.style(headline, bold=True)}\n{rest}\n")
    for line in (*summary_lines(report), *(baseline_lines(judgement) if judgement.has_baseline else ())):
        click.echo(line)
    if provenance:
        click.echo(f"recorded: {_flat(report.provenance)}")


def specs(pairs: Sequence[tuple[str, Spec | Declared]]) -> Table:
    """Return the table of specs."""
    table = _table("spec", "kind", "target", title="Specs")
    table.add_column("what it is")
    for path, spec in pairs:
        table.add_row(Text(spec.name, "bold"), Text(spec.kind), Text(path), Text(spec.summary))
    return table


def audits(rows: Sequence[tuple[str, str, str, str]]) -> Table:
    """Return the table of the Functions of a module: name, how dangerous, which laws, and the call."""
    table = _table("function", "worst", "laws", "call", title="Audits")
    for name, worst, broken, case in rows:
        table.add_row(Text(name, "bold"), Text(worst), Text(broken), Text(case))
    return table


def laws(known: Sequence[Law]) -> Table:
    """Return the table of laws, in the order in which they run."""
    table = _table("law", "family", "judges", title="Laws")
    table.add_column("what it says")
    for law in known:
        judges = Text(law.judged)
        table.add_row(
            Text(law.name, "bold"), Text(law.family), judges, Text(_plain(law.doc.strip().partition("\n\n")[0]))
        )
    return table


def kill_matrix(matrix: Matrix) -> Table:
    """Return the table of specimens and mutants, with the laws that noticed each, and torch's checkers if asked."""
    tools = list(dict.fromkeys(tool for subject in matrix.subjects for tool in subject.stock))
    table = _table("subject", "sort", "killed by", *tools)
    for subject in matrix.subjects:
        killers = ", ".join(subject.killed_by) or subject.crash or ("nothing: no different" if subject.proof else "-")
        said = (subject.stock.get(tool, "") for tool in tools)
        opinions = (Text(text if text in ("", "accepts", "nothing to check") else "rejects") for text in said)
        table.add_row(Text(subject.name, "bold red" if subject.fault else ""), subject.sort, Text(killers), *opinions)
    return table


def law_page(law: Law) -> str:
    """Return the page of a law as text."""
    facts = [f"family: {law.family}", f"judges: {law.judged}", f"runs over: {law.over}", f"cost: {law.cost}"]
    facts += [f"requires: {', '.join(law.requires)}"] if law.requires else []
    facts += [f"promised by: supports.{law.capability}"] if law.capability else []
    facts += [f"broken on purpose by: {', '.join(law.specimens)}"] if law.specimens else []
    page = (click.style(law.name, bold=True), f"  {law.statement}", _roles(law.doc.strip()), "\n".join(facts))
    return "\n\n".join(page) + "\n"


def print_differences(reports: Sequence[Report]) -> None:
    """Print a row for each cell of which the reports of several environments say different things."""
    from gradspec._engine._merge import differing, labels

    differ = differing(reports)
    click.echo(f"{len(reports)} environments, {len(differ)} cells differ")
    table = _table("spec", "law", "case", *labels(reports))
    for cell, statuses in differ.items():
        said = (Text(words(status), _STYLES[status]) if status else Text("-") for status in statuses)
        table.add_row(*map(Text, cell), *said)
    if differ:
        put(console(), table)


def _columns_that_fit(screen: Console, report: Report, names: list[str], between: str) -> Iterator[list[str]]:
    """Yield the specs in groups whose table is no wider than the screen."""
    group: list[str] = []
    for name in names:
        if group and _width(screen, _verdicts(screen, report, [*group, name], between)) > screen.width:
            yield group
            group = []
        group.append(name)
    if group:
        yield group


def _width(screen: Console, table: Table) -> int:
    return Measurement.get(screen, screen.options.update_width(_NO_LIMIT), table).maximum


def _verdicts(screen: Console, report: Report, names: list[str], between: str) -> Table:
    table = _table("law", *names)
    mine = [verdict for verdict in report.verdicts if verdict.spec in names]
    for law in dict.fromkeys(verdict.law for verdict in mine):
        numbers = [counts(v for v in mine if v.law == law and v.spec == name) for name in names]
        table.add_row(Text(law), *(_cell(screen, number, between) for number in numbers))
    return table


def _cell(screen: Console, number: Mapping[Status, int], between: str) -> Text:
    signs = not screen.options.ascii_only
    parts = [
        Text(" ".join([SIGNS[status]] * signs + [words(status), str(count)]), _STYLES[status])
        for status, count in number.items()
    ]
    return Text(between).join(parts)


def _table(*headers: str, title: str | None = None) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    for header in headers:
        table.add_column(Text(header), no_wrap=True, overflow="fold")
    return table


def _roles(text: str) -> str:
    """Return reStructuredText with its roles and double quotes shown as plain code."""
    return re.sub(r"(?::[\w:]+:)?`+([^`]+)`+", r"`\1`", text)


def _plain(text: str) -> str:
    return " ".join(_roles(text).split())


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_flat(item)}" for key, item in value.items() if item not in (None, "", {}))
    return str(value)
