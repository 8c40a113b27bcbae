"""The words of a line as Markdown: code, emphasis, mathematics, links."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeAlias
from urllib.parse import quote

from docutils import nodes
from sphinx import addnodes

from gradspec._one_line import visible
from gradspec.sphinx_ext._addresses import is_linked

#: What becomes of the address of a reference.
Link: TypeAlias = Callable[[str], str]

#: The class of a number that is recorded for an older source.
OLDER = "gradspec-older"
#: What Markdown would read as a mark: of emphasis, code, a link, HTML, mathematics, an entity.
_SPECIAL = re.compile(r"([\\`*_<\[\]$~]|&(?=#?\w+;))")
#: What it reads as a mark at the start of a line: of a heading, a list, a quotation, a rule.
_LEADING = re.compile(r"^(?=(?:#{1,6}|[-+>]|={3,}|-{3,})(?:\s|$))|^(\d+)(?=[.)]\s)")


def escaped(text: str) -> str:
    """Return words that Markdown shows as they are."""
    return _SPECIAL.sub(r"\\\1", visible(text))


def inline(children: Iterable[nodes.Node], link: Link) -> str:
    """Return inline nodes as Markdown; a line break is a space.

    What is recorded for an older source has a mark, which is explained once at the end.

    Args:
        children: the nodes.
        link: what becomes of the address of a reference.
    """
    given = list(children)
    older = [node for child in given for node in child.findall(nodes.abbreviation) if OLDER in node["classes"]]
    notes = "; ".join(dict.fromkeys(escaped(node["explanation"]) for node in older))
    words = "".join(_one(child, link) for child in given) + (rf" (\*: {notes})" if notes else "")
    text = re.sub(r"\s+", " ", words).strip()
    return _LEADING.sub(r"\1\\", text)


def _one(node: nodes.Node, link: Link) -> str:
    if isinstance(node, nodes.Text):
        return escaped(str(node))
    if isinstance(node, nodes.literal | addnodes.literal_strong | addnodes.desc_sig_space):
        return _code(node.astext())
    if isinstance(node, nodes.math):
        return f"${node.astext()}$"
    if isinstance(node, nodes.image):
        return f"![{escaped(node.get('alt', ''))}]({_address(link(node['uri']))})"
    if not isinstance(node, nodes.Element) or isinstance(node, nodes.raw | nodes.comment | nodes.target):
        return ""
    words = "".join(_one(child, link) for child in node)
    if isinstance(node, nodes.reference):
        address = _address(link(node.get("refuri") or f"#{node.get('refid', '')}"))
        return f"[{words.strip()}]({address})" if words.strip() and is_linked(address) else words.strip()
    if isinstance(node, nodes.strong):
        return f"**{words}**"
    if isinstance(node, nodes.emphasis):
        return f"*{words}*"
    if isinstance(node, nodes.abbreviation) and (said := node.get("explanation")):
        return rf"{words}\*" if OLDER in node["classes"] else f"{words} ({escaped(said)})"
    return words


def _address(address: str) -> str:
    return quote(address, safe="%/:?#[]@!$&'*+,;=~-._") if re.search(r"[\s()<>\\]", address) else address


def _code(text: str) -> str:
    text = re.sub(r"\s+", " ", visible(text))
    marks = "`" * (1 + max([0, *map(len, re.findall(r"`+", text))]))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{marks}{space}{text}{space}{marks}"
