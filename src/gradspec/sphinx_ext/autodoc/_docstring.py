"""The docstring of what a page is about, in the parts that a page shows, read as reST on any page."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator
from textwrap import indent
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.ext.autodoc import Options
from sphinx.util.docutils import SphinxDirective

#: The first section of a docstring: "Args:" with an indented text, "Parameters" underlined, or a field ":param x:".
_SECTION = re.compile(
    r"^(?:[A-Z][a-z]+(?: [A-Za-z]+)?:[ ]*\n[ ]+\S|[A-Z][a-z]+\n-{3,}[ ]*$|:[a-z]+[^:`\n]*:)", re.MULTILINE
)
_SHAPE = re.compile(r"^Shape:[ ]*\n((?:[ ]+\S.*(?:\n|$))+)", re.MULTILINE)
#: What begins a block that lasts as long as lines are indented: a section of Google's form, a field, a formula.
_BLOCKS = (
    re.compile(r"(?P<title>[A-Z][A-Za-z]*(?: [A-Za-z]+)*)::?\s*"),
    re.compile(r":(?P<title>[a-z]+)\b[^:`]*:.*"),
    re.compile(r"\.\. (?P<title>math)::.*"),
)
_UNDERLINE = re.compile(r"-{3,}\s*")
#: The one name of a section, by its others.
_SAME = {
    **dict.fromkeys(("args", "parameters", "params", "param", "parameter", "arg", "argument", "type"), "arguments"),
    **dict.fromkeys(("keyword args", "keyword arguments", "other parameters", "keyword", "kwtype"), "arguments"),
    "example": "examples",
    "math": "formula",
    "reference": "references",
}
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


def remainder(documented: Any, shown: str, sections: Collection[str]) -> str:
    """Return what a docstring says beside what a page shows elsewhere.

    Args:
        documented: an object.
        shown: the beginning of its docstring that the page shows; other words change nothing.
        sections: what the page shows of its own: "arguments", "examples", "formula", "references", "shape".
    """
    doc = _own(documented)
    begins = re.match(r"\s+".join(map(re.escape, shown.split())) + r"(?:\s*\n|\s*\Z)", doc)
    kept = doc[begins.end() :] if begins else doc
    return "\n".join(line for title, line in _titled(kept) if title not in sections).strip("\n")


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


def as_autodoc(page: SphinxDirective, documented: Any, target: str, text: str) -> list[nodes.Node]:
    """Return the nodes that autodoc makes of a part of a docstring: napoleon and others read its sections.

    Args:
        page: the directive on the page.
        documented: the object whose docstring it is.
        target: its qualified name.
        text: the part.
    """
    if not text:
        return []
    kind = "class" if isinstance(documented, type) else "function"
    lines = [*text.split("\n"), ""]
    page.env.events.emit("autodoc-process-docstring", kind, target, documented, Options({"no-index": True}), lines)
    body = indent("\n".join(lines), "   ")
    # Only the Python domain makes "Returns" of a field, and it does so in the description of an object.
    made = parsed(page, f".. py:{kind}:: {target}\n   :no-index:\n\n{body}\n")
    return [node for content in _contents(made) for node in content.children]


def _contents(made: list[nodes.Node]) -> Iterator[addnodes.desc_content]:
    for node in made:
        if isinstance(node, addnodes.desc):
            yield from (part for part in node.children if isinstance(part, addnodes.desc_content))


def _titled(doc: str) -> Iterator[tuple[str, str]]:
    """Yield each line of a docstring with the one name of its section or block; empty outside of any."""
    lines = doc.split("\n")
    title = lasting = last = ""
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        found = next(filter(None, (form.fullmatch(line) for form in _BLOCKS)), None)
        if _UNDERLINE.fullmatch(after) and line[:1].strip():
            title = lasting = _name(line.strip())
        elif line.startswith(">>>"):
            title = "examples"
        elif found:
            title, lasting = _name(found["title"]), ""
        elif line[:1].strip() and not (title == "examples" and last.strip()):  # not what an example prints
            title = lasting
        yield title, line
        last = line


def _name(title: str) -> str:
    return _SAME.get(title.lower(), title.lower())


def _own(documented: Any) -> str:
    return inspect.cleandoc(getattr(documented, "__doc__", None) or "")
