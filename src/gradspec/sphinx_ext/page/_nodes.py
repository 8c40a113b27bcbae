"""Docutils nodes in one line each. Nodes, not reST text: a page in Markdown and one in reST get the same tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from docutils import nodes

from gradspec.sphinx_ext.output._tables import TABLE

#: What a table cell may be made of.
Cell: TypeAlias = str | nodes.Node | Sequence[nodes.Node]

_INLINE = re.compile(r":math:`(?P<math>[^`]+)`|:\w+(?::\w+)?:`(?P<role>[^`]+)`|``(?P<two>.+?)``|`(?P<one>[^`]+)`")


def inline(text: str) -> list[nodes.Node]:
    """Return text in which `code`, ``code`` and :math:`f` are set as such."""
    found: list[nodes.Node] = []
    end = 0
    for match in _INLINE.finditer(text):
        if match.start() > end:
            found.append(nodes.Text(text[end : match.start()]))
        if tex := match["math"]:
            found.append(nodes.math(tex, tex))
        else:
            code = match["role"] or match["two"] or match["one"]
            found.append(nodes.literal(code, code))
        end = match.end()
    if end < len(text):
        found.append(nodes.Text(text[end:]))
    return found


def paragraph(*parts: str | nodes.Node, classes: Sequence[str] = ()) -> nodes.paragraph:
    """Return a paragraph; a string is read by `inline`."""
    made = nodes.paragraph(classes=list(classes))
    for part in parts:
        made += inline(part) if isinstance(part, str) else part
    return made


def span(text: str, *classes: str) -> nodes.inline:
    """Return text with CSS classes."""
    return nodes.inline(text, text, classes=list(classes))


def formula(tex: str) -> nodes.math_block:
    """Return a displayed formula."""
    return nodes.math_block(tex, tex, xml_space="preserve", nowrap=False, number=None)


def code(text: str, language: str) -> nodes.literal_block:
    """Return a block of code."""
    return nodes.literal_block(text, text, language=language)


def table(head: Sequence[Cell], rows: Iterable[Sequence[Cell]], *classes: str) -> nodes.container:
    """Return a table that scrolls within itself. A row of one cell spans the table and titles the rows below it."""
    group = nodes.tgroup(cols=len(head))
    for _ in head:
        group += nodes.colspec(colwidth=1)
    group += nodes.thead("", _row(head, len(head)))
    group += nodes.tbody("", *(_row(row, len(head)) for row in rows))
    return nodes.container("", nodes.table("", group, classes=[TABLE, *classes]), classes=["gradspec-scroll"])


def _row(cells: Sequence[Cell], columns: int) -> nodes.row:
    row = nodes.row()
    alone = len(cells) == 1 and columns > 1
    for cell in cells:
        entry = nodes.entry(morecols=columns - 1, classes=["gradspec-group"]) if alone else nodes.entry()
        entry += _blocks(cell)
        row += entry
    return row


def _blocks(cell: Cell) -> list[nodes.Node]:
    if isinstance(cell, str):
        return [paragraph(cell)] if cell else []
    parts = [cell] if isinstance(cell, nodes.Node) else list(cell)
    if all(isinstance(part, nodes.Inline | nodes.Text) for part in parts):
        return [paragraph(*parts)]
    return parts
