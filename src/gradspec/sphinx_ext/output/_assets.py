"""The style sheets, the fonts and the scripts that pages need, copied beside them: nothing is fetched from anywhere."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from gradspec.sphinx_ext.output import _math

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.builders import Builder

STATIC = Path(__file__).parents[1] / "static"


def setup(app: Sphinx) -> None:
    """Link the style sheets, and copy them before the first page is written."""
    app.connect("builder-inited", _link)
    app.connect("write-started", _copy)


def _link(app: Sphinx) -> None:
    if app.builder.format == "html":
        app.add_css_file("gradspec/gradspec.css")
        for script in ("scroll.js", "copy.js"):
            app.add_js_file(f"gradspec/{script}", loading_method="defer")
    if _math.is_used(app):
        app.add_css_file("gradspec/katex/katex.min.css")


def _copy(app: Sphinx, builder: Builder) -> None:
    if builder.format != "html":
        return
    ignored = shutil.ignore_patterns("katex.min.js" if _math.is_used(app) else "katex")
    shutil.copytree(STATIC, Path(app.outdir) / "_static" / "gradspec", ignore=ignored, dirs_exist_ok=True)
