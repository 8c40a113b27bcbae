"""The sections of a page, always in the same order: those that its kind of spec names, and those of every page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from docutils import nodes

from gradspec.spec import Kind
from gradspec.sphinx_ext.page import _differences, _evidence, _laws, _operator, _semantics
from gradspec.sphinx_ext.page._view import View

#: A title, and what makes the content; a section without content is left out.
Section = tuple[str, Callable[[View], Iterable[nodes.Node]]]


@dataclass(frozen=True, kw_only=True)
class Page:
    """The sections of the page of one kind of spec."""

    #: Before the members.
    before: tuple[Section, ...]
    #: Whether the docstring of the class is shown, up to its first section. Where members show it, it is not.
    described: bool = False


DIFFERENCES = "Differences from published implementations"

MEMBERS = "Members"

#: First on every page: what a reader types.
EXAMPLES: Section = ("Examples", _evidence.examples)
MEASURED: tuple[Section, ...] = (
    ("Errors", _evidence.errors),
    ("Laws", _laws.laws),
    (DIFFERENCES, _differences.differences),
)
#: After the members, on every page.
AFTER: tuple[Section, ...] = (("References", _semantics.references), ("Provenance", _evidence.provenance))

#: What a kind of spec may name as the sections of its page.
SECTIONS: Mapping[str, Section] = {
    "computes": ("What it computes", _semantics.computes),
    "described": ("What it computes", _semantics.described),
    "arguments": ("Arguments", _semantics.arguments),
    "schema": ("Schema and kernels", _operator.schema),
    "call": ("Call", _semantics.call),
    "state": ("State", _evidence.state),
    "comes_out": ("What comes out", _semantics.comes_out),
}


def page_of(kind: Kind) -> Page:
    """Return what the page of a spec of a kind says.

    Raises:
        ValueError: the kind names a section that there is not.
    """
    if unknown := [name for name in kind.sections if name not in SECTIONS]:
        known = ", ".join(SECTIONS)
        raise ValueError(f"the kind {kind.name!r} names the section {unknown[0]!r}: the sections are {known}")
    own = tuple(SECTIONS[name] for name in kind.sections)
    return Page(before=(EXAMPLES, *own, *MEASURED), described=kind.described)
