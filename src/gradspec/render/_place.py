"""Where a finding belongs in the source of a repository: the code under test, or else its spec."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gradspec._one_line import visible
from gradspec._record import file_of, shown_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradspec.report import Report


@dataclass(frozen=True)
class Where:
    """A line of a file."""

    #: The path from the working directory; an absolute one outside of it.
    file: str
    #: From 1.
    line: int

    @property
    def is_here(self) -> bool:
        """Whether the file lies below the working directory, as what a repository holds does."""
        return not Path(self.file).is_absolute()


def place_of_spec(report: Report, spec: str) -> Where | None:
    """Return the line of what a spec is about, or of the spec; None if neither is below the working directory."""
    sheet = report.sheets.get(spec, {})
    places = (where_is(root) for root in (sheet.get("under_test", ""), sheet.get("path", "")) if root)
    return next((place for place in places if place is not None and place.is_here), None)


def where_is(root: str) -> Where | None:
    """Return where `module:NAME` or `file.py:NAME` is defined, without importing it; None if there is no such file.

    In place of a name may stand a line. A name that the file does not define, as one that it imports, is on its
    first line.
    """
    file, name = file_of(root), root.rpartition(":")[2] if ":" in root else ""
    if file is None:
        return None
    try:
        body = ast.parse(file.read_bytes()).body
    except (SyntaxError, ValueError, OSError, RecursionError):
        return None
    line = int(name) if name.isdecimal() else _line(body, name.split(".")) if name else 1
    return Where(visible(shown_path(file)), line)


def _line(body: Sequence[ast.stmt], names: Sequence[str]) -> int:
    """Return the line of the last statement that binds a name, and of the names within that."""
    line = 1
    for name in names:
        bound = [statement for statement in _flat(body) if name in _binds(statement)]
        if not bound:
            break
        line, body = bound[-1].lineno, getattr(bound[-1], "body", [])
    return line


def _flat(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return statements with those within `if`, `try` and `with`, which bind the same names."""
    found: list[ast.stmt] = []
    for statement in body:
        found.append(statement)
        if not isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for handler in getattr(statement, "handlers", []):
                found += _flat(handler.body)
            for part in ("body", "orelse", "finalbody"):
                found += _flat(getattr(statement, part, []))
    return found


def _binds(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
    return {getattr(statement, "name", "")}
