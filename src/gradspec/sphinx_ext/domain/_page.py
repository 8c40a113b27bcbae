"""The current page: its objects and its dependencies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx import addnodes
from sphinx.util.nodes import make_id

from gradspec.sphinx_ext.domain._domain import domain_of
from gradspec.sphinx_ext.domain._objects import OBJECTS
from gradspec.sphinx_ext.domain._records import Records

if TYPE_CHECKING:
    from sphinx.environment import BuildEnvironment
    from sphinx.util.docutils import SphinxDirective

    from gradspec._record import Source


def note_object(directive: SphinxDirective, kind: str, name: str, node: nodes.Element) -> addnodes.index:
    """Note that a node of the current page shows an object: it gets an anchor, and an entry in the general index.

    Args:
        directive: that makes the node.
        kind: one of `OBJECTS`.
        name: by which a role links to it.
        node: that shows it; an id that it has is the anchor.

    Returns:
        The entry, which goes before the node.
    """
    document = directive.state.document
    if not node["ids"]:
        node["ids"] = [make_id(directive.env, document, kind, name)]
    document.set_id(node)
    anchor = node["ids"][0]
    domain_of(directive.env).note(kind, name, anchor)
    return addnodes.index(entries=[("single", f"{name} ({OBJECTS[kind].label})", anchor, "", None)])


def records_for_page(env: BuildEnvironment) -> Records:
    """Return the records of a build, and note that the current page depends on them."""
    domain = domain_of(env)
    for path in domain.records.paths:
        if path.exists():
            env.note_dependency(path)
        else:  # Sphinx would read a page again in each build for a file that is not there
            domain.note_pattern(path, [])
    return domain.records


def all_records_for_page(env: BuildEnvironment) -> Records:
    """Return the records of a build, and note that the current page shows verdicts of every spec in them."""
    records = records_for_page(env)
    for file in {file for record in records.build for files in record.files.values() for file in files}:
        env.note_dependency(file)
    return records


def is_about_today(env: BuildEnvironment, path: Path, sources: Mapping[str, Source]) -> bool:
    """Whether what a record depends on is as it was measured; the current page depends on its files."""
    today = domain_of(env).records.today(path)
    for source in sources.values():
        for file in today.files(source):
            env.note_dependency(file)
    return today.is_current(sources)
