"""Register every part of the extension with Sphinx."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gradspec import __version__
from gradspec.spec._kinds import kinds
from gradspec.sphinx_ext import _announced, _config, _gc_tuning, _inventories
from gradspec.sphinx_ext.autodoc import _autodoc, _numpydoc, _viewcode
from gradspec.sphinx_ext.directives._audit import AuditDirective
from gradspec.sphinx_ext.directives._failure import FailureDirective
from gradspec.sphinx_ext.directives._fields import FieldsDirective
from gradspec.sphinx_ext.directives._law import LawDirective
from gradspec.sphinx_ext.directives._laws import LawsDirective
from gradspec.sphinx_ext.directives._matrix import MatrixDirective
from gradspec.sphinx_ext.directives._spec import SpecDirective
from gradspec.sphinx_ext.directives._symptoms import SymptomsDirective
from gradspec.sphinx_ext.domain import _domain
from gradspec.sphinx_ext.output import _assets, _latex, _law_pages, _llms, _math, _summary, _tables
from gradspec.sphinx_ext.page import _defaults, _links, _order

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.docutils import SphinxDirective
    from sphinx.util.typing import ExtensionMetadata

DIRECTIVES: Mapping[str, type[SphinxDirective]] = {
    **{f"gradspec-{kind.name}": SpecDirective for kind in kinds()},
    "gradspec-audit": AuditDirective,
    "gradspec-failure": FailureDirective,
    "gradspec-fields": FieldsDirective,
    "gradspec-law": LawDirective,
    "gradspec-laws": LawsDirective,
    "gradspec-matrix": MatrixDirective,
    "gradspec-symptoms": SymptomsDirective,
}

#: Moves when a pickled environment of the former form can no longer be read.
ENV_VERSION = 1


def setup_extension(app: Sphinx) -> ExtensionMetadata:
    """Register every part of the extension."""
    _gc_tuning.setup(app)  # before what takes memory
    _config.setup(app)
    _inventories.setup(app)
    _autodoc.setup(app)
    _numpydoc.setup(app)
    _defaults.setup(app)
    _domain.setup(app)
    _law_pages.setup(app)
    _links.setup(app)
    _order.setup(app)
    _math.setup(app)
    _assets.setup(app)
    _summary.setup(app)
    _tables.setup(app)
    _latex.setup(app)
    _llms.setup(app)
    _viewcode.setup(app)
    for name, directive in DIRECTIVES.items():
        app.add_directive(name, directive)
    _announced.setup(app)
    return {"env_version": ENV_VERSION, "parallel_read_safe": True, "parallel_write_safe": True, "version": __version__}
