"""Reports, specs and laws on a terminal: rich tables, and the same tables without colour in a pipe."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click
from rich import box
from rich.table import Table
from rich.text import Text

from gradspec.law import Law

if TYPE_CHECKING:
    from gradspec._registry._declared import Declared
    from gradspec._symptoms import Symptom
    from gradspec.spec import Spec


def specs(pairs: Sequence[tuple[str, Spec | Declared]]) -> Table:
    """Return the table of specs."""
    table = table_of("spec", "kind", "target", title="Specs")
    table.add_column("what it is")
    for path, spec in pairs:
        table.add_row(Text(spec.name, "bold"), Text(spec.kind), Text(path), Text(spec.headline))
    return table


def audits(rows: Sequence[tuple[str, str, str, str]]) -> Table:
    """Return the table of the Functions of a module: name, how dangerous, which laws, and the call."""
    table = table_of("function", "worst", "laws", "call", title="Audits")
    for name, worst, broken, case in rows:
        table.add_row(Text(name, "bold"), Text(worst), Text(broken), Text(case))
    return table


def laws(known: Sequence[Law]) -> Table:
    """Return the table of laws, in the order in which they run."""
    table = table_of("law", "family", "judges", title="Laws")
    table.add_column("what it says")
    for law in known:
        judges = Text(law.judged)
        table.add_row(
            Text(law.name, "bold"), Text(law.family), judges, Text(_plain(law.doc.strip().partition("\n\n")[0]))
        )
    return table


def law_page(law: Law) -> str:
    """Return the page of a law as text."""
    facts = [f"family: {law.family}", f"judges: {law.judged}", f"runs over: {law.over}", f"cost: {law.cost}"]
    facts += [f"requires: {', '.join(law.requires)}"] if law.requires else []
    facts += [f"promised by: supports.{law.capability}"] if law.capability else []
    page = (click.style(law.name, bold=True), f"  {law.statement}", _roles(law.doc.strip()), "\n".join(facts))
    return "\n\n".join(page) + "\n"


def symptoms(rows: Iterable[Symptom]) -> str:
    """Return the symptom index as text, a paragraph for each kind of reason."""
    return "\n".join(
        f"{click.style(row.kind, bold=True)}\n  symptom: {row.symptom}\n  cause:   {row.cause}\n"
        f"  remedy:  {row.remedy}\n  laws:    {', '.join(row.laws)}\n"
        for row in rows
    )


def table_of(*headers: str, title: str | None = None) -> Table:
    """Return a table without rows whose columns do not wrap."""
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    for header in headers:
        table.add_column(Text(header), no_wrap=True, overflow="fold")
    return table


def _roles(text: str) -> str:
    """Return reStructuredText with its roles and double quotes shown as plain code."""
    return re.sub(r"(?::[\w:]+:)?`+([^`]+)`+", r"`\1`", text)


def _plain(text: str) -> str:
    return " ".join(_roles(text).split())
