"""The Sphinx extension of the laboratory, `gradspec_lab.sphinx`: directives that show its records."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

__all__ = ["setup"]


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the extension, and before it that of the package, whose domain and pages it uses; Sphinx calls it."""
    from gradspec_lab.sphinx._setup import setup_extension

    app.setup_extension("gradspec.sphinx_ext")
    return setup_extension(app)
