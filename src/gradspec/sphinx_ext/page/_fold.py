"""Folded blocks, which open where a reader asks for them, without a script."""

from __future__ import annotations

from docutils import nodes


def folded(title: str, *content: nodes.Node) -> nodes.admonition:
    """Return content behind its title: Sphinx writes a `collapsible` admonition as `details`."""
    return nodes.admonition("", nodes.title("", title), *content, collapsible="closed", classes=["gradspec-fold"])
