"""Links that may lead nowhere: to torch, to a law's page, to the type of an argument.

A project that has no page for a law, or no inventory of torch, sees the plain word and gets no warning.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx import addnodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

#: Marks a reference that may stay unresolved.
OPTIONAL = "gradspec_optional"


def optional_link(domain: str, role: str, target: str, shown: nodes.Node) -> addnodes.pending_xref:
    """Return a reference that becomes a link where its target is documented."""
    link = addnodes.pending_xref(
        "", shown, refdomain=domain, reftype=role, reftarget=target, refexplicit=True, refwarn=False
    )
    link[OPTIONAL] = True
    return link


def law_link(name: str) -> nodes.Node:
    """Return a law's name, linked to its page."""
    return optional_link("gradspec", "law", name, nodes.literal(name, name))


def spec_link(name: str, shown: str = "") -> nodes.Node:
    """Return a function's name, linked to its page."""
    return optional_link("gradspec", "spec", name, _camel(shown or name))


def _camel(name: str) -> nodes.literal:
    """Return a name that a narrow column breaks between its words, and nowhere else; what follows a space is prose."""
    head, space, rest = name.partition(" ")
    parts = re.findall(r"(?:[A-Z]+[^A-Z_.:]*|[^A-Z_.:]+|^)[_.:]*", head)
    words = (nodes.inline("", part, classes=["gradspec-part"]) for part in parts)
    return nodes.literal("", "", *words, nodes.Text(space + rest))


def annotation_nodes(annotation: str, full_names: Mapping[str, str]) -> list[nodes.Node]:
    """Return an annotation, each name in it a link.

    Args:
        annotation: as a reader writes it: "float | Tensor".
        full_names: what the short names represent.
    """
    found: list[nodes.Node] = []
    for piece in re.findall(r"[A-Za-z_][\w.]*|[^A-Za-z_]+", annotation):
        if not (piece[0].isalpha() or piece[0] == "_"):
            found.append(nodes.Text(piece))
            continue
        role = "obj" if piece == "None" or not hasattr(builtins, piece) else "class"
        found.append(optional_link("py", role, full_names.get(piece, piece), nodes.Text(piece)))
    return found


def setup(app: Sphinx) -> None:
    """Leave an optional reference as the plain word, after everything else has looked for it."""
    app.connect("missing-reference", _plain, priority=900)


def _plain(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, contnode: nodes.TextElement
) -> nodes.Node | None:
    return contnode if node.get(OPTIONAL) else None
