"""A page as Markdown: its resolved doctree, block by block. A node that is not known gives what it contains.

sphinx-llm 1.1.0, on sphinx-markdown-builder 0.6.11, was tried in its place, on the pages of `test-twins`: it leaves the
HTML in a title and the pipe in a cell as they are, ends a fence at the backquotes in its code, makes a heading of a
note, and writes a figure's SVG out; and it builds the whole site a second time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from html import unescape
from textwrap import indent

from docutils import nodes
from sphinx import addnodes

from gradspec._one_line import visible
from gradspec.sphinx_ext.output._markdown_inline import Link, escaped, inline

_SVG_WORDS = re.compile(r"<(title|desc)\b[^>]*>(.*?)</\1>", re.DOTALL)
#: What a page shows and a text has no place for.
_HIDDEN = (nodes.comment, nodes.substitution_definition, nodes.system_message, nodes.target, addnodes.index, nodes.meta)


def markdown(doctree: nodes.document, link: Link) -> str:
    """Return a page as CommonMark with pipe tables and TeX between dollars.

    Args:
        doctree: of the page, its references resolved.
        link: what becomes of the address of a reference.
    """
    return _Writer(link).blocks(doctree.children, 1) + "\n"


class _Writer:
    """Blocks are separated by an empty line; `level` is that of the next heading."""

    def __init__(self, link: Link) -> None:
        self.link = link

    def blocks(self, children: Iterable[nodes.Node], level: int) -> str:
        """Return blocks; inline nodes that are among them make a paragraph."""
        parts: list[str] = []
        words: list[nodes.Node] = []
        for child in [*children, None]:
            if isinstance(child, nodes.Inline | nodes.Text) and not isinstance(child, nodes.raw | nodes.image):
                words.append(child)
                continue
            parts.append(self.inline(words))
            words = []
            if child is not None:
                parts.append(self.block(child, level))
        return "\n\n".join(part for part in parts if part.strip())

    def block(self, node: nodes.Node, level: int) -> str:
        """Return one block."""
        if isinstance(node, _HIDDEN) or not isinstance(node, nodes.Element):
            return ""
        for kinds, write in self._writers():
            if isinstance(node, kinds):
                return write(node, level)
        return self.blocks(node.children, level)

    def inline(self, children: Iterable[nodes.Node]) -> str:
        """Return inline nodes as one line."""
        return inline(children, self.link)

    def _writers(self) -> tuple[tuple[type | tuple[type, ...], Callable[[nodes.Element, int], str]], ...]:
        return (
            (nodes.section, lambda node, level: self.blocks(node.children, level + 1)),
            (nodes.title, lambda node, level: f"{'#' * max(level - 1, 1)} {self.inline(node.children)}"),
            (nodes.rubric, lambda node, level: f"**{self.inline(node.children)}**"),
            (addnodes.compact_paragraph, lambda node, level: self.blocks(node.children, level)),
            ((nodes.paragraph, nodes.term, nodes.caption), lambda node, level: self.inline(node.children)),
            ((nodes.literal_block, nodes.doctest_block), lambda node, level: _fence(node)),
            (nodes.math_block, lambda node, level: f"$$\n{node.astext().strip()}\n$$"),
            (nodes.bullet_list, lambda node, level: self._items(node, level, ordered=False)),
            (nodes.enumerated_list, lambda node, level: self._items(node, level, ordered=True)),
            (nodes.definition_list_item, self._definition),
            (nodes.field, self._definition),
            (addnodes.desc, self._described),
            (nodes.table, lambda node, level: self._table(node)),
            (nodes.raw, lambda node, level: _words_of_svg(node.astext())),
            (nodes.image, lambda node, level: self.inline([node])),
            (nodes.transition, lambda node, level: "---"),
            ((nodes.Admonition, nodes.block_quote), self._quote),
            (nodes.line_block, lambda node, level: "  \n".join(self.inline(line.children) for line in node)),
        )

    def _items(self, node: nodes.Element, level: int, *, ordered: bool) -> str:
        items = []
        for number, item in enumerate(node, int(node.get("start", 1))):
            mark = f"{number}. " if ordered else "- "
            text = self.blocks(item.children, level)
            items.append(mark + indent(text, " " * len(mark)).lstrip())
        return ("\n\n" if any("\n\n" in item for item in items) else "\n").join(items)

    def _definition(self, node: nodes.Element, level: int) -> str:
        """Return a term or the name of a field, with what is said of it as an item."""
        said = [c for c in node if isinstance(c, nodes.definition | nodes.field_body)]
        words = " ".join(self.inline(c.children) for c in node if c not in said)
        body = "\n\n".join(self.blocks(part.children, level) for part in said)
        return f"- **{words}**" + (f"\n\n{indent(body, '  ')}" if body.strip() else "")

    def _described(self, node: nodes.Element, level: int) -> str:
        """Return an object: a heading for each signature, then its description."""
        heads = [
            f"{'#' * min(level, 6)} `{_signature(part)}`" for part in node if isinstance(part, addnodes.desc_signature)
        ]
        rest = [part for part in node if not isinstance(part, addnodes.desc_signature)]
        return "\n\n".join([*heads, self.blocks(rest, level + 1)])

    def _table(self, node: nodes.Element) -> str:
        rows = [[self._cell(entry) for entry in _entries(row)] for row in node.findall(nodes.row)]
        if not rows:
            return ""
        width = max(map(len, rows))
        lines = [f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in rows]
        if not list(node.findall(nodes.thead)):
            lines.insert(0, "|" + "   |" * width)
        title = next(iter(node.findall(nodes.title)), None)
        above = f"{self.inline(title.children)}\n\n" if title is not None else ""
        return above + "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])

    def _cell(self, entry: nodes.Element) -> str:
        text = self.blocks(entry.children, 6)
        return re.sub(r"\s*\n\s*", " ", re.sub(r"\n{2,}", "; ", text.strip())).replace("|", r"\|")

    def _quote(self, node: nodes.Element, level: int) -> str:
        title, rest = "", list(node.children)
        if rest and isinstance(rest[0], nodes.title):  # Sphinx gives one to an admonition that has none
            title = f"**{self.inline(rest.pop(0).children)}**\n\n"
        text = title + self.blocks(rest, level)
        return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def _entries(row: nodes.Element) -> list[nodes.Element]:
    return [entry for entry in row if isinstance(entry, nodes.Element)]


def _signature(node: nodes.Element) -> str:
    """Return a signature without the link to its source."""
    bare = node.deepcopy()
    for link in [part for part in bare.findall(nodes.inline) if "viewcode-link" in part["classes"]]:
        link.clear()
    return " ".join(bare.astext().split())


def _fence(node: nodes.Element) -> str:
    text = visible(node.astext().rstrip("\n"))
    marks = "`" * max([3, *(len(run) + 1 for run in re.findall(r"`{3,}", text))])
    language = node.get("language", "pycon" if isinstance(node, nodes.doctest_block) else "")
    return f"{marks}{'' if language in ('default', 'none') else language}\n{text}\n{marks}"


def _words_of_svg(text: str) -> str:
    """Return the title and the description of a figure, which say in words what it shows."""
    return "\n\n".join(f"Figure: {escaped(unescape(words).strip())}" for _, words in _SVG_WORDS.findall(text))
