"""The style of a recorded experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    """Link the style sheet of the figures."""
    app.connect("builder-inited", _link)


def _link(app: Sphinx) -> None:
    if app.builder.format == "html":
        app.add_css_file("gradspec/plot.css")
