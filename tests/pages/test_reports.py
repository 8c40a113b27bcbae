"""The table of public reports in the gallery is what their docstrings and the record say, row by row."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

from gradspec_lab.strangers.operator_specs import OPERATORS
from pages.blocks import DOCS

FOUND = ("wrong silently", "refused with an error")
REPORT = re.compile(
    r"(?P<what>.+?)\. https://github\.com/(?P<home>[\w-]+/[\w-]+)/(?P<kind>\w+)/(?P<number>\d+): (?P<why>.+)"
)


def reports() -> Iterator[tuple[str, re.Match[str]]]:
    """Yield, for each rebuilt report, its name in the record, and what its docstring says."""
    for node in ast.parse((OPERATORS / "reports.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and (said := REPORT.match(ast.get_docstring(node) or "")):
            yield (node.name if isinstance(node, ast.ClassDef) else f"strangers_reports::{node.name}"), said


def cells(said: re.Match[str], first: dict[str, Any]) -> str:
    """Return a row of the table."""
    home, number = said["home"], said["number"]
    rank = "" if first["rank"] in FOUND else f": {first['rank']}"
    report = f"[{home.partition('/')[2]}#{number}](https://github.com/{home}/{said['kind']}/{number})"
    return f"| {report} | {said['what']}: {said['why']} | {{gradspec:law}}`{first['law']}`{rank} |"


def test_the_table_is_what_the_reports_and_the_record_say() -> None:
    record = json.loads((OPERATORS / "record.json").read_text(encoding="utf-8"))["rows"]
    first = {row["name"]: row["findings"][0] for row in record if row["findings"]}
    rows = sorted((cells(said, first[name]) for name, said in reports()), key=str.lower)

    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    table = page.partition("| report |")[2].partition("\n\n")[0].splitlines()[2:]
    assert table == rows
