"""The style sheets, the fonts and the scripts that pages need, copied beside them: nothing is fetched from anywhere."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from gradspec.sphinx_ext.output import _math
from gradspec.sphinx_ext.output._site import has_pages, is_site

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.builders import Builder

STATIC = Path(__file__).parents[1] / "static"


def setup(app: Sphinx) -> None:
    """Link the style sheets, and copy them before the first page is written."""
    app.connect("builder-inited", _link)
    app.connect("write-started", _copy)


def _link(app: Sphinx) -> None:
    if has_pages(app.builder):
        app.add_css_file("gradspec/gradspec.css")
    if is_site(app.builder):
        for script in ("scroll.js", "copy.js"):
            app.add_js_file(f"gradspec/{script}", loading_method="defer")
    if _math.is_used(app) and is_site(app.builder):
        app.add_css_file("gradspec/katex/katex.min.css")


def _copy(app: Sphinx, builder: Builder) -> None:
    if not has_pages(builder):
        return
    if is_site(builder):
        ignored = shutil.ignore_patterns("katex.min.js" if _math.is_used(app) else "katex")
    else:  # an EPUB has MathML, and neither scripts nor files of other types
        ignored = shutil.ignore_patterns("katex", "*.js")
    shutil.copytree(STATIC, Path(app.outdir) / "_static" / "gradspec", ignore=ignored, dirs_exist_ok=True)
