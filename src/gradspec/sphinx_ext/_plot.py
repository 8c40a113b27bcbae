"""What a page needs to show a recorded experiment: a directive for its figures, a role for its numbers, a style."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradspec.sphinx_ext._plot_directive import CurvesDirective
from gradspec.sphinx_ext._plot_number import NumberRole

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    """Register the directive `gradspec-curves`, the role `gradspec:number` and their style sheet."""
    app.add_directive("gradspec-curves", CurvesDirective)
    app.add_role_to_domain("gradspec", "number", NumberRole())
    app.connect("builder-inited", _link)


def _link(app: Sphinx) -> None:
    if app.builder.format == "html":
        app.add_css_file("gradspec/plot.css")
