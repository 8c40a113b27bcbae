"""The kill matrix on a terminal."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from gradspec.cli._tables import table_of
from gradspec_lab.selftest._record import Matrix


def kill_matrix(matrix: Matrix) -> Table:
    """Return the table of specimens and mutants, with the laws that noticed each, and torch's checkers if asked."""
    tools = list(dict.fromkeys(tool for subject in matrix.subjects for tool in subject.stock))
    table = table_of("subject", "sort", "killed by", *tools)
    for subject in matrix.subjects:
        killers = ", ".join(subject.killed_by) or subject.crash or ("nothing: no different" if subject.proof else "-")
        said = (subject.stock.get(tool, "") for tool in tools)
        opinions = (Text(text if text in ("", "accepts", "nothing to check") else "rejects") for text in said)
        table.add_row(Text(subject.name, "bold red" if subject.fault else ""), subject.sort, Text(killers), *opinions)
    return table
