"""Tables as lists, in output that has none that fit: a manual page refuses merged cells, and text makes columns narrow.

Each builder gets the same tree of a page, so that a table becomes a list as its page is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

if TYPE_CHECKING:
    from sphinx.application import Sphinx

#: The class of each table of ours.
TABLE = "gradspec-table"
#: The formats of builders that show a table as it is, or write the tree of the page itself.
_HAVE_TABLES = ("html", "latex", "xml", "pseudoxml", "")


def setup(app: Sphinx) -> None:
    """Register the transform."""
    app.add_post_transform(TablesAsLists)


class TablesAsLists(SphinxPostTransform):
    """Replace each table of ours by a list: an item for each row, in it each further cell below its column's head."""

    #: Behind what resolves references, which may replace a node.
    default_priority = 900

    def is_supported(self) -> bool:
        """Whether the builder needs lists."""
        return self.app.builder.format not in _HAVE_TABLES

    def run(self, **_: Any) -> None:
        """Replace the tables of a page."""
        for table in list(self.document.findall(_is_ours)):
            assert isinstance(table, nodes.table)
            table.parent.replace(table, list(_as_list(table)))  # `replace_self` refuses a table without rows


def _is_ours(node: nodes.Node) -> bool:
    return isinstance(node, nodes.table) and TABLE in node["classes"]


def _as_list(table: nodes.table) -> Iterator[nodes.Node]:
    """Yield a list of the rows; the title of a group of rows is a paragraph above a list of its own."""
    (head,), rows = ([_cells(row) for row in part.findall(nodes.row)] for part in _parts(table))
    listed = nodes.bullet_list(bullet="*")
    for cells in rows:
        if cells[0].get("morecols"):
            yield from [listed] if len(listed) else []
            yield nodes.paragraph("", "", nodes.strong("", "", *_inline(cells[0])))
            listed = nodes.bullet_list(bullet="*")
            continue
        more = nodes.bullet_list(bullet="*")
        for title, cell in zip(head[1:], cells[1:], strict=True):
            if cell.children:
                more += nodes.list_item("", *_titled(title, cell))
        listed += nodes.list_item("", *cells[0].children, *([more] if len(more) else []))
    yield from [listed] if len(listed) else []


def _parts(table: nodes.table) -> tuple[nodes.thead, nodes.tbody]:
    return next(table.findall(nodes.thead)), next(table.findall(nodes.tbody))


def _cells(row: nodes.row) -> list[nodes.entry]:
    return [cell for cell in row if isinstance(cell, nodes.entry)]


def _titled(title: nodes.entry, cell: nodes.entry) -> list[nodes.Node]:
    """Return the blocks of a cell, the head of its column before the first words."""
    said: list[nodes.Node] = [*(part.deepcopy() for part in _inline(title)), nodes.Text(": ")]
    first, *rest = cell.children
    if isinstance(first, nodes.paragraph):
        return [nodes.paragraph("", "", *said, *first.children), *rest]
    return [nodes.paragraph("", "", *said[:-1]), first, *rest]


def _inline(cell: nodes.entry) -> list[nodes.Node]:
    """Return the words of a cell of one paragraph."""
    return [part for block in cell for part in (block.children if isinstance(block, nodes.Element) else [block])]
