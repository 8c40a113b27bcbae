"""The sections of a page, always in the same order: those of each kind of spec. Another kind is another entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from docutils import nodes

from gradspec.sphinx_ext.page import _differences, _evidence, _semantics
from gradspec.sphinx_ext.page._view import View

#: A title, and what makes the content; a section without content is left out.
Section = tuple[str, Callable[[View], Iterable[nodes.Node]]]


@dataclass(frozen=True, kw_only=True)
class Page:
    """What the page of a spec of one kind says."""

    #: Before the members.
    before: tuple[Section, ...]
    #: Whether the members that the class has from torch are listed, each with an anchor.
    inherited: bool
    #: Whether the docstring of the class is shown, up to its first section. Where members show it, it is not.
    described: bool = False


DIFFERENCES = "Differences from published implementations"

MEASURED: tuple[Section, ...] = (
    ("Errors", _evidence.errors),
    ("Examples", _evidence.examples),
    ("Laws", _evidence.laws),
    (DIFFERENCES, _differences.differences),
)
#: After the members, on every page.
AFTER: tuple[Section, ...] = (("References", _semantics.references), ("Provenance", _evidence.provenance))

PAGES: Mapping[str, Page] = {
    "function": Page(
        before=(("What it computes", _semantics.computes), ("Arguments", _semantics.arguments), *MEASURED),
        inherited=True,
    ),
    "module": Page(
        before=(
            ("What it computes", _semantics.described),
            ("Arguments", _semantics.arguments),
            ("Call", _semantics.call),
            ("State", _evidence.state),
            *MEASURED,
        ),
        inherited=False,
        described=True,
    ),
    "text": Page(
        before=(("Arguments", _semantics.arguments), ("What comes out", _semantics.comes_out), *MEASURED),
        inherited=False,
    ),
}
