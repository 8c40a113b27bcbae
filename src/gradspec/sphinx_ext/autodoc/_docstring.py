"""The description in a class's docstring, up to its first section, read as reST on any page."""

from __future__ import annotations

import inspect
import re
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

#: The first section of a docstring: "Args:" with an indented text, "Parameters" underlined, or a field ":param x:".
_SECTION = re.compile(
    r"^(?:[A-Z][a-z]+(?: [A-Za-z]+)?:[ ]*\n[ ]+\S|[A-Z][a-z]+\n-{3,}[ ]*$|:[a-z]+[^:`\n]*:)", re.MULTILINE
)
_SHAPE = re.compile(r"^Shape:[ ]*\n((?:[ ]+\S.*(?:\n|$))+)", re.MULTILINE)
#: Longer than any fence in a docstring.
_FENCE = "`" * 12


def description(documented: Any) -> str:
    """Return the docstring of an object up to its first section; empty without one, whatever a base says."""
    doc = _own(documented)
    first = _SECTION.search(doc)
    return (doc[: first.start()] if first else doc).strip()


def shape(documented: Any) -> str:
    """Return the section "Shape:" of the docstring of an object, a sentence; empty without one."""
    found = _SHAPE.search(_own(documented))
    return " ".join(found[1].split()) if found else ""


def parsed(page: SphinxDirective, text: str) -> list[nodes.Node]:
    """Return the nodes of reST, also on a page in Markdown.

    Args:
        page: the directive on the page.
        text: a docstring, or a part of one.
    """
    if not text:
        return []
    if type(page.state).__module__.startswith("myst_parser"):
        text = f"{_FENCE}{{eval-rst}}\n{text}\n{_FENCE}"
    return page.parse_text_to_nodes(text)


def _own(documented: Any) -> str:
    return inspect.cleandoc(getattr(documented, "__doc__", None) or "")
