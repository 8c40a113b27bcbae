"""Which builds make a web site: an EPUB has pages of HTML too, and takes only files of the types that it knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.builders import Builder

#: The name of Sphinx's builder of EPUBs.
_EPUB = "epub"


def has_pages(builder: Builder) -> bool:
    """Whether a build makes pages of HTML, of a site or of an EPUB."""
    return builder.format == "html"


def is_site(builder: Builder) -> bool:
    """Whether a build makes the pages of a web site, which has scripts, twins and what a search engine reads."""
    return has_pages(builder) and builder.name != _EPUB
