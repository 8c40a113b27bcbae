"""The Sphinx extension: pages of custom autograd functions, rendered from specs and from recorded measurements.

Add `gradspec.sphinx_ext` to `extensions`. Importing this package imports neither Sphinx nor torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

__all__ = ["setup"]


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the extension; Sphinx calls it."""
    from gradspec.sphinx_ext._setup import setup_extension

    return setup_extension(app)
