"""The words of a line as Markdown: code, emphasis, mathematics, links."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

from docutils import nodes
from sphinx import addnodes

#: What becomes of the address of a reference.
Link: TypeAlias = Callable[[str], str]

_SPECIAL = re.compile(r"([\\`*<])")


def inline(children: Iterable[nodes.Node], link: Link) -> str:
    """Return inline nodes as Markdown; a line break is a space.

    Args:
        children: the nodes.
        link: what becomes of the address of a reference.
    """
    return re.sub(r"\s+", " ", "".join(_one(child, link) for child in children)).strip()


def _one(node: nodes.Node, link: Link) -> str:
    if isinstance(node, nodes.Text):
        return _SPECIAL.sub(r"\\\1", str(node))
    if isinstance(node, nodes.literal | addnodes.literal_strong | addnodes.desc_sig_space):
        return _code(node.astext())
    if isinstance(node, nodes.math):
        return f"${node.astext()}$"
    if isinstance(node, nodes.image):
        return f"![{node.get('alt', '')}]({link(node['uri'])})"
    if not isinstance(node, nodes.Element) or isinstance(node, nodes.raw | nodes.comment | nodes.target):
        return ""
    words = "".join(_one(child, link) for child in node)
    if isinstance(node, nodes.reference):
        address = node.get("refuri") or f"#{node.get('refid', '')}"
        return f"[{words.strip()}]({link(address)})" if words.strip() else ""
    if isinstance(node, nodes.strong):
        return f"**{words}**"
    if isinstance(node, nodes.emphasis):
        return f"*{words}*"
    return words


def _code(text: str) -> str:
    text = re.sub(r"\s+", " ", text)
    marks = "`" * (1 + max([0, *map(len, re.findall(r"`+", text))]))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{marks}{space}{text}{space}{marks}"
